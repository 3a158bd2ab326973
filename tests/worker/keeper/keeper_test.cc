#include "worker/keeper/keeper.h"

#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include "tests/worker/keeper/keeper_fixture.h"
#include "transport/wire/step_page.h"

namespace monarch {
namespace {

class KeeperOf : public KeeperTest, public testing::WithParamInterface<CgroupUse> {
 protected:
  void begin() {
    keeper_ = start_keeper(GetParam());
    ASSERT_NE(keeper_, nullptr);
    enter();
  }
  std::string output(std::uint32_t rank) {
    std::string got(4096, '\0');
    const ssize_t count = ::read(pipes_[key(rank)][0].get(), got.data(), got.size());
    return count > 0 ? got.substr(0, static_cast<std::size_t>(count)) : "";
  }
  std::string ticking(const std::string& file) const {
    return "while :; do echo >> " + path(file) + "; sleep 0.005; done";
  }
  // Nothing came in 200 ms, the time of some forty ticks.
  bool still(const std::string& file) {
    const std::size_t before = read(file).size();
    const Instant end = boot_now() + Duration::milliseconds(200);
    EXPECT_TRUE(until([&] { return boot_now() >= end; }));
    return read(file).size() == before;
  }
  Child* keeper_ = nullptr;
};

TEST_P(KeeperOf, RunsARankUnderItsLeaseAndTellsItsEnd) {
  begin();
  send(start_order({"echo from $MONARCH_RANK_KEY; exit 7"}));
  ASSERT_TRUE(await_phase(0, RankPhase::kGated));
  ASSERT_TRUE(until([&] { return pipes_.contains(key(0)); }));
  EXPECT_EQ(output(0), "");
  lease(1, Duration::seconds(60));
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded));
  EXPECT_EQ(reports_[key(0)].end.kind, EndKind::kExited);
  EXPECT_EQ(reports_[key(0)].end.value, 7);
  EXPECT_FALSE(reports_[key(0)].end.after_our_signal);
  EXPECT_EQ(output(0), "from 0.0.1.1\n");
}

// What a daemon that is late has not read yet is not lost, however many ranks are told of.
TEST_F(KeeperTest, TellsALateDaemonOfEachOfManyRanks) {
  const Child* const keeper = start_keeper();
  ASSERT_NE(keeper, nullptr);
  enter();
  constexpr std::uint32_t kRanks = 1'000;  // two frames each, and more than a channel and its socket hold otherwise
  Start order = start_order(std::vector<std::string>(kRanks, ""));
  order.program = {"/bin/true"};
  send(order);
  const auto forked = [&] {
    const std::vector<ProcessEntry> all = list_processes();
    return std::count_if(all.begin(), all.end(),
                         [&](const ProcessEntry& entry) { return entry.parent == keeper->pid(); });
  };
  // Nothing is read until no more are forked; that it lives the daemon says unasked.
  std::ptrdiff_t before = -1;
  const Instant end = boot_now() + Duration::seconds(30);
  for (std::ptrdiff_t now = forked(); (now != before || now < 100) && boot_now() < end; now = forked()) {
    before = now;
    send(KeeperPong{});
    (void)::poll(nullptr, 0, 200);
  }
  EXPECT_LT(before, kRanks) << "they are forked as fast as they are heard of";
  ASSERT_TRUE(until([&] {
    for (auto& [rank, ends] : pipes_) ends.clear();  // of so many this process may have too few descriptors
    return reports_.size() == kRanks && pipes_.size() == kRanks;
  })) << reports_.size();
  lease(kRanks, Duration::seconds(60));
  ASSERT_TRUE(until([&] {
    return std::all_of(reports_.begin(), reports_.end(),
                       [](const auto& one) { return one.second.phase == RankPhase::kEnded; });
  }));
}

TEST_P(KeeperOf, TellsWhyARankWasNotExecuted) {
  begin();
  Start order = start_order({""});
  order.program = {"/nonesuch/train.py"};
  run(order);
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded));
  EXPECT_EQ(reports_[key(0)].end.kind, EndKind::kNotExecuted);
  EXPECT_EQ(reports_[key(0)].end.value, ENOENT);
  EXPECT_EQ(reports_[key(0)].end.detail, "exec /nonesuch/train.py");
}

TEST_P(KeeperOf, GivesAQuickASlowAndADeafRankTheirWholeGrace) {
  begin();
  run(start_order({"touch " + path("r0") + "; exec sleep 1000",
                   "trap 'sleep 0.4; exit 5' TERM; touch " + path("r1") + "; while :; do sleep 0.01; done",
                   "trap '' TERM; touch " + path("r2") + "; while :; do sleep 0.01; done"}));
  ASSERT_TRUE(await_file("r0") && await_file("r1") && await_file("r2"));
  const Instant from = boot_now();
  stop({0, 1, 2}, Duration::milliseconds(1'000));
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded));
  EXPECT_EQ(reports_[key(0)].end.value, SIGTERM);
  ASSERT_TRUE(await_phase(1, RankPhase::kEnded));
  EXPECT_EQ(reports_[key(1)].end.value, 5);
  ASSERT_TRUE(await_phase(2, RankPhase::kEnded));
  EXPECT_EQ(reports_[key(2)].end.value, SIGKILL);
  EXPECT_GE(boot_now() - from, Duration::milliseconds(1'000));
  for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_TRUE(reports_[key(rank)].end.after_our_signal);
}

TEST_P(KeeperOf, ClearsWhatALeaderLeavesBehindBeforeItCallsTheRankEnded) {
  begin();
  run(start_order({"(setsid sh -c 'echo $$ > " + path("pid") + "; exec sleep 1000' &); while ! [ -s " + path("pid") +
                   " ]; do sleep 0.01; done; exit 3"}));
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded));
  EXPECT_EQ(reports_[key(0)].end.value, 3);
  EXPECT_FALSE(alive(static_cast<pid_t>(std::stol(read("pid")))));
}

TEST_P(KeeperOf, FreezesARankAtTheEndOfItsLeaseAndThawsItUnderANewOne) {
  begin();
  run(start_order({ticking("ticks")}), Duration::milliseconds(500));
  ASSERT_TRUE(until([&] { return reports_[key(0)].held; }));
  EXPECT_TRUE(still("ticks"));
  const std::size_t frozen = read("ticks").size();
  EXPECT_GT(frozen, 0U);
  lease(1, Duration::seconds(60));
  ASSERT_TRUE(until([&] { return !reports_[key(0)].held && read("ticks").size() > frozen; }));
}

TEST_P(KeeperOf, PassesASignalOnToAProgramWhoseStartItHasNotNoticedYet) {
  begin();
  Start order =
      start_order({"trap 'touch " + path("got") + "' USR1; touch " + path("up") + "; while :; do sleep 0.01; done"});
  order.setup = "touch " + path("began") + "; while ! [ -e " + path("go") + " ]; do sleep 0.01; done";
  run(order);
  ASSERT_TRUE(await_file("began"));
  const UniqueFd keeper = open_process(*read_process(keeper_->pid()));
  ASSERT_TRUE(send_signal(keeper.get(), SIGSTOP));
  // The order waits before the news that the program was executed.
  send(Signal{.ranks = {{MeshId(0), Rank(0)}}, .generation = {Term(1), 1}, .number = SIGUSR1});
  write("go", "", 0644);
  ASSERT_TRUE(await_file("up"));
  ASSERT_TRUE(send_signal(keeper.get(), SIGCONT));
  EXPECT_TRUE(await_file("got"));
}

TEST_P(KeeperOf, KillsAHeldRankWhenItsOrphanTimeIsOver) {
  begin();
  Start order = start_order({"exec sleep 1000"});
  order.orphan_ttl = Duration::milliseconds(900);
  run(order, Duration::milliseconds(300));
  ASSERT_TRUE(until([&] { return reports_[key(0)].held; }));
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded));
  EXPECT_EQ(reports_[key(0)].end.value, SIGKILL);
  EXPECT_TRUE(reports_[key(0)].end.after_our_signal);
}

TEST_P(KeeperOf, HandsRanksPipesAndStashToTheNextDaemonWhenOneIsKilled) {
  begin();
  EXPECT_EQ(stash_, "the first stash");
  send(KeeperStash{"the second stash"});
  run(start_order({"echo early; while ! [ -e " + path("go") + " ]; do sleep 0.01; done; echo late; exit 4"}));
  ASSERT_TRUE(await_phase(0, RankPhase::kRunning));
  const std::int32_t rank_pid = reports_[key(0)].pid;
  const auto before = hello_->incarnation;
  kill_door();
  pipes_.clear();
  enter();
  EXPECT_EQ(hello_->starts, 2U);
  EXPECT_EQ(hello_->incarnation, before);
  ASSERT_EQ(hello_->ranks.size(), 1U);
  EXPECT_EQ(hello_->ranks[0].pid, rank_pid);
  EXPECT_EQ(hello_->ranks[0].phase, RankPhase::kRunning);
  EXPECT_EQ(stash_, "the second stash");
  ASSERT_TRUE(until([&] { return pipes_.contains(key(0)); }));
  write("go", "", 0644);
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded));
  EXPECT_EQ(reports_[key(0)].end.value, 4);
  EXPECT_EQ(output(0), "early\nlate\n");
}

TEST_P(KeeperOf, KeepsTheOutputOfAnEndedRankForADaemonThatComesLater) {
  begin();
  run(start_order({"echo last words"}));
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded));
  kill_door();
  pipes_.clear();
  enter();
  ASSERT_EQ(hello_->ranks.size(), 1U);
  EXPECT_EQ(hello_->ranks[0].phase, RankPhase::kEnded);
  ASSERT_TRUE(until([&] { return pipes_.contains(key(0)); }));
  EXPECT_EQ(output(0), "last words\n");
  send(KeeperForget{{key(0)}});
  kill_door();
  pipes_.clear();
  enter();
  EXPECT_TRUE(hello_->ranks.empty());
}

// So that what fails again and again needs no more than it does once.
TEST_P(KeeperOf, GivesBackThePipesOfWhatWasReadToItsEnd) {
  begin();
  run(start_order({"echo said", "echo unread"}));
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded) && await_phase(1, RankPhase::kEnded));
  ASSERT_TRUE(until([&] { return pipes_.contains(key(0)) && pipes_.contains(key(1)); }));
  EXPECT_EQ(output(0), "said\n");
  const std::string read = std::filesystem::read_symlink(text("/proc/self/fd/", pipes_[key(0)][0].get()));
  const std::string unread = std::filesystem::read_symlink(text("/proc/self/fd/", pipes_[key(1)][0].get()));
  Start next = start_order({"exec sleep 1000"});
  next.ranks[0].rank = {MeshId(0), Rank(2)};
  send(next);
  ASSERT_TRUE(await_phase(2, RankPhase::kGated));
  std::set<std::string> held;
  for (const auto& entry : std::filesystem::directory_iterator(text("/proc/", keeper_->pid(), "/fd"))) {
    std::error_code gone;
    held.insert(std::filesystem::read_symlink(entry.path(), gone));
  }
  EXPECT_FALSE(held.contains(read));
  EXPECT_TRUE(held.contains(unread));
  kill_door();
  pipes_.clear();
  enter();
  ASSERT_TRUE(until([&] { return pipes_.contains(key(0)) && pipes_.contains(key(1)); }));
  char byte = 0;
  EXPECT_EQ(::read(pipes_[key(0)][0].get(), &byte, 1), 0) << "who comes later finds its end";
  EXPECT_EQ(output(1), "unread\n");
}

TEST_P(KeeperOf, KillsADaemonThatDoesNotAnswerAndStartsAnother) {
  begin();
  run(start_order({"exec sleep 1000"}));
  ASSERT_TRUE(await_phase(0, RankPhase::kRunning));
  StepPage page = make_step_page().value();
  std::vector<UniqueFd> lent;
  lent.push_back(std::move(page.reader));
  send(KeeperPong{}, {}, std::move(lent));
  const pid_t deaf_pid = door_pid_;
  deaf_ = true;
  const Instant busy_until = boot_now() + Duration::milliseconds(3'500);
  ASSERT_TRUE(until([&] { return !alive(deaf_pid) || (++*page.count, boot_now() > busy_until); }));
  EXPECT_TRUE(alive(deaf_pid)) << "it goes on";
  const Instant from = boot_now();
  ASSERT_TRUE(until([&] { return !alive(deaf_pid); }));
  deaf_ = false;
  EXPECT_GE(boot_now() - from, Duration::milliseconds(1'000));
  EXPECT_LE(boot_now() - from, Duration::milliseconds(4'000));
  enter();
  ASSERT_EQ(hello_->ranks.size(), 1U);
  EXPECT_EQ(hello_->ranks[0].phase, RankPhase::kRunning) << "it cost the rank nothing";
}

TEST_P(KeeperOf, TakesItsRanksLeadersWithItWhenItIsKilled) {
  begin();
  run(start_order({"exec sleep 1000", "exec sleep 1000"}));
  ASSERT_TRUE(await_phase(0, RankPhase::kRunning) && await_phase(1, RankPhase::kRunning));
  ASSERT_TRUE(send_signal(keeper_->pidfd(), SIGKILL));
  end_of(keeper_);
  EXPECT_TRUE(until([&] { return !alive(reports_[key(0)].pid) && !alive(reports_[key(1)].pid); }));
  EXPECT_TRUE(alive(door_pid_)) << "the daemon is the one that cleans up";
}

TEST_P(KeeperOf, StopsItsRanksInOrderAtATerm) {
  begin();
  Start order = start_order({"trap 'exit 5' TERM; touch " + path("up") + "; while :; do sleep 0.01; done"});
  run(order);
  ASSERT_TRUE(await_file("up"));
  ASSERT_TRUE(send_signal(keeper_->pidfd(), SIGTERM));
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded));
  EXPECT_EQ(reports_[key(0)].end.value, 5);
  EXPECT_EQ(end_of(keeper_).value, 143);
}

TEST_P(KeeperOf, KillsWhatIsLeftAtAShutdownAndExitsAsItWasTold) {
  begin();
  run(start_order({"trap '' TERM; touch " + path("up") + "; while :; do sleep 0.01; done"}));
  ASSERT_TRUE(await_file("up"));
  EXPECT_FALSE(left_);
  send(KeeperShutdown{0});
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded));
  ASSERT_TRUE(until([this] { return left_.has_value(); }));
  EXPECT_EQ(*left_, 0U);
  exit_door(0);
  EXPECT_EQ(end_of(keeper_).value, 0);
}

TEST_P(KeeperOf, HoldsPortsThatASocketWithReuseCanStillListenOn) {
  begin();
  send(Reserve{MeshId(0), GangId(0), {Term(1), 1}, 2});
  ASSERT_TRUE(until([&] { return reserved_.has_value(); }));
  ASSERT_EQ(reserved_->error, "");
  ASSERT_EQ(reserved_->ports.size(), 2U);
  EXPECT_NE(reserved_->ports[0], reserved_->ports[1]);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(reserved_->ports[0]);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto bound = [&address](bool reuse) {
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = reuse ? 1 : 0;
    EXPECT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
           ::listen(socket.get(), 1) == 0;
  };
  EXPECT_TRUE(bound(true));
  EXPECT_FALSE(bound(false));
  run(start_order({"true"}));
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded));
  EXPECT_TRUE(until([&] { return bound(false); })) << "given back when the ranks have ended";
}

TEST_P(KeeperOf, RunsFiftyRanks) {
  begin();
  std::vector<std::string> lines;
  for (int i = 0; i < 50; ++i) lines.push_back("exit " + std::to_string(i));
  run(start_order(lines));
  for (std::uint32_t rank = 0; rank < 50; ++rank) {
    ASSERT_TRUE(await_phase(rank, RankPhase::kEnded)) << rank;
    EXPECT_EQ(reports_[key(rank)].end.value, static_cast<int>(rank));
  }
}

INSTANTIATE_TEST_SUITE_P(Cgroup, KeeperOf, testing::Values(CgroupUse::kIfWritable));
INSTANTIATE_TEST_SUITE_P(Scan, KeeperOf, testing::Values(CgroupUse::kNever));

}  // namespace
}  // namespace monarch
