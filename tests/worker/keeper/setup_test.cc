#include <cerrno>

#include "tests/worker/keeper/keeper_fixture.h"

namespace monarch {
namespace {

// A mesh's setup, through a real keeper.
class SetupOf : public KeeperTest, public testing::WithParamInterface<CgroupUse> {
 protected:
  void begin() {
    keeper_ = start_keeper(GetParam());
    ASSERT_NE(keeper_, nullptr);
    enter();
  }
  Start order(std::string setup, std::vector<std::string> lines) const {
    Start order = start_order(std::move(lines));
    order.setup = std::move(setup);
    return order;
  }
  std::string output(std::uint32_t rank, std::size_t stream = 0) {
    std::string got(4096, '\0');
    const ssize_t count = ::read(pipes_[key(rank)][stream].get(), got.data(), got.size());
    return count > 0 ? got.substr(0, static_cast<std::size_t>(count)) : "";
  }
  bool await_ends(std::uint32_t ranks) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      if (!await_phase(rank, RankPhase::kEnded)) return false;
    }
    return true;
  }
  std::string block_until(const std::string& file) const {
    return "while ! [ -e " + path(file) + " ]; do sleep 0.01; done";
  }
  Child* keeper_ = nullptr;
};

TEST_P(SetupOf, RunsOnceForAllRanksAndIsTheBaseOfTheirEnvironment) {
  begin();
  Start start = order("echo run >> " + path("runs") + "; export A=setup B=setup C=setup",
                      {"echo $A $B $C", "echo $A $B $C", "echo $A $B $C"});
  start.env = {{"B", "gang"}, {"C", "gang"}};
  for (RankStart& rank : start.ranks) rank.env["C"] = "own";
  run(start);
  ASSERT_TRUE(await_ends(3));
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(reports_[key(rank)].end.kind, EndKind::kExited);
    EXPECT_EQ(output(rank), "setup gang own\n");
  }
  EXPECT_EQ(read("runs"), "run\n");
}

TEST_P(SetupOf, KnowsNothingOfTheGangAndTheRankAndIsInTheirWorkingDirectory) {
  begin();
  Start start =
      order("echo \"${B-none} ${C-none} $PWD $MONARCH_HOST $MONARCH_MESH\"; read line || echo no input", {"true"});
  start.env = {{"B", "gang"}, {"MONARCH_MESH", "trainer"}};
  start.ranks[0].env["C"] = "own";
  start.workdir = folder_;
  run(start);
  ASSERT_TRUE(await_ends(1));
  EXPECT_EQ(reports_[key(0)].end.value, 0);
  EXPECT_EQ(output(0), "none none " + folder_ + " v1 trainer\nno input\n");
}

TEST_P(SetupOf, LetsItsPathFindTheProgram) {
  begin();
  write("only-here", "#!/bin/sh\nexit 9\n", 0755);
  Start start = order("PATH=" + folder_ + ":$PATH", {""});
  start.program = {"only-here"};
  run(start);
  ASSERT_TRUE(await_ends(1));
  EXPECT_EQ(reports_[key(0)].end.value, 9);
}

TEST_P(SetupOf, ThatFailsIsTheEndOfEveryRankAndIsNotRepeated) {
  begin();
  run(order("echo run >> " + path("runs") + "; echo no such module >&2; exit 42", {"true", "true", "true"}));
  ASSERT_TRUE(await_ends(3));
  std::string errors;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const RankEnd& end = reports_[key(rank)].end;
    EXPECT_EQ(end.kind, EndKind::kSetupFailed);
    EXPECT_EQ(end.value, 42);
    EXPECT_FALSE(end.after_our_signal);
    errors += output(rank, 1);
  }
  EXPECT_EQ(errors, "no such module\n");
  EXPECT_EQ(read("runs"), "run\n");
}

TEST_P(SetupOf, ThatFailedIsTriedAgainByTheNextGeneration) {
  begin();
  Start start = order("echo run >> " + path("runs") + "; [ -e " + path("go") + " ]", {"exit 5"});
  run(start);
  ASSERT_TRUE(await_ends(1));
  EXPECT_EQ(reports_[key(0)].end.kind, EndKind::kSetupFailed);
  EXPECT_EQ(reports_[key(0)].end.value, 1);
  write("go", "", 0644);
  for (const std::uint64_t counter : {2U, 3U}) {
    start.generation.counter = counter;
    send(start);
    send(KeeperLease{{{start.ranks[0].rank, start.generation}}, boot_now() + Duration::seconds(60)});
    const Incarnation later = key(0, counter);
    ASSERT_TRUE(until([&] { return reports_.contains(later) && reports_[later].phase == RankPhase::kEnded; }));
    EXPECT_EQ(reports_[later].end.kind, EndKind::kExited);
    EXPECT_EQ(reports_[later].end.value, 5);
  }
  EXPECT_EQ(read("runs"), "run\nrun\n") << "the third generation finds it done";
}

TEST_P(SetupOf, ThatIsKilledWithItsRankIsRunByAnother) {
  begin();
  run(order("echo $MONARCH_RANK_KEY >> " + path("runs") + "; " + block_until("go"), {"exit 5", "exit 6"}));
  ASSERT_TRUE(until([&] { return !read("runs").empty(); }));
  const std::uint32_t first = read("runs") == "0.0.1.1\n" ? 0 : 1;
  EXPECT_EQ(reports_[key(0)].phase, RankPhase::kGated);
  EXPECT_EQ(reports_[key(1)].phase, RankPhase::kGated);
  stop({first}, Duration::zero());
  ASSERT_TRUE(await_phase(first, RankPhase::kEnded));
  EXPECT_EQ(reports_[key(first)].end.value, SIGKILL);
  write("go", "", 0644);
  ASSERT_TRUE(await_phase(1 - first, RankPhase::kEnded));
  EXPECT_EQ(reports_[key(1 - first)].end.kind, EndKind::kExited);
  EXPECT_EQ(read("runs"), first == 0 ? "0.0.1.1\n0.1.1.1\n" : "0.1.1.1\n0.0.1.1\n");
}

TEST_P(SetupOf, HasTheGraceOfAStopAndItsRanksAreNotExecuted) {
  begin();
  run(order("trap 'touch " + path("cleaned") + "; exit 0' TERM; touch " + path("up") + "; while :; do sleep 0.01; done",
            {"touch " + path("executed"), "touch " + path("executed")}));
  ASSERT_TRUE(await_file("up"));
  stop({0, 1}, Duration::seconds(60));
  ASSERT_TRUE(await_ends(2));
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(reports_[key(rank)].end.kind, EndKind::kSignaled);
    EXPECT_EQ(reports_[key(rank)].end.value, SIGTERM);
    EXPECT_TRUE(reports_[key(rank)].end.after_our_signal);
  }
  EXPECT_TRUE(std::filesystem::exists(path("cleaned")));
  EXPECT_FALSE(std::filesystem::exists(path("executed")));
}

TEST_P(SetupOf, EndsAtOnceByAStopWhereverItIs) {
  begin();
  // WARNING: a bash that has a TERM between two commands waits for the second one. So what it waits for has it, too.
  run(order("sh -c 'touch " + path("up") + "; exec sleep 1000'", {"true", "true"}));
  ASSERT_TRUE(await_file("up"));
  stop({0, 1}, Duration::seconds(60));
  ASSERT_TRUE(await_ends(2));
  EXPECT_EQ(reports_[key(0)].end.value, SIGTERM);
  EXPECT_EQ(reports_[key(1)].end.value, SIGTERM);
}

TEST_P(SetupOf, IsFrozenAtTheEndOfALeaseAndGoesOnUnderANewOne) {
  begin();
  run(order("while ! [ -e " + path("go") + " ]; do echo >> " + path("ticks") + "; sleep 0.005; done", {"exit 5"}),
      Duration::milliseconds(500));
  ASSERT_TRUE(until([&] { return reports_[key(0)].held; }));
  EXPECT_EQ(reports_[key(0)].phase, RankPhase::kGated) << "it was not executed";
  const std::size_t frozen = read("ticks").size();
  EXPECT_GT(frozen, 0U);
  lease(1, Duration::seconds(60));
  ASSERT_TRUE(until([&] { return !reports_[key(0)].held && read("ticks").size() > frozen; }));
  write("go", "", 0644);
  ASSERT_TRUE(await_ends(1));
  EXPECT_EQ(reports_[key(0)].end.kind, EndKind::kExited);
  EXPECT_EQ(reports_[key(0)].end.value, 5);
}

TEST_P(SetupOf, LeavesNothingRunningWhenTheRankThatRanItHasEnded) {
  begin();
  run(order("setsid sleep 1000 & echo $! > " + path("pid"), {"exit 5"}));
  ASSERT_TRUE(await_ends(1));
  EXPECT_EQ(reports_[key(0)].end.value, 5);
  EXPECT_FALSE(alive(static_cast<pid_t>(std::stol(read("pid")))));
}

TEST_P(SetupOf, ThatCannotBeHandedToBashIsAnExecutionThatFailed) {
  begin();
  run(order(std::string(200'000, '#'), {"true"}));
  ASSERT_TRUE(await_ends(1));
  EXPECT_EQ(reports_[key(0)].end.kind, EndKind::kNotExecuted);
  EXPECT_EQ(reports_[key(0)].end.value, E2BIG);
  EXPECT_EQ(reports_[key(0)].end.detail, "exec bash, which `setup` needs");
}

INSTANTIATE_TEST_SUITE_P(Cgroup, SetupOf, testing::Values(CgroupUse::kIfWritable));
INSTANTIATE_TEST_SUITE_P(Scan, SetupOf, testing::Values(CgroupUse::kNever));

}  // namespace
}  // namespace monarch
