#include "supervisor/core/health/progress_watch.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

constexpr std::size_t kRanks = 4;

RankId id_of(std::size_t rank) { return {MeshId(0), Rank(static_cast<std::uint32_t>(rank))}; }

// One gang of four ranks on a host that beats every second.
class ProgressWatchTest : public testing::Test {
 protected:
  explicit ProgressWatchTest(HangPolicy policy = {}) : spec(fixtures::job_of(1, kRanks)) {
    spec.meshes[0].supervision.hang = std::move(policy);
    for (std::size_t i = 0; i < kRanks; ++i) {
      reports[i].process.rank = id_of(i);
      reports[i].process.generation = {Term(1), 1};
      reports[i].phase = RankPhase::kRunning;
    }
  }

  void says(std::size_t rank, std::optional<std::uint64_t> step, const std::string& phase = {}) {
    RankProgress& progress = reports[rank].progress;
    if (step) progress.step = step;
    if (!phase.empty()) progress.phase = phase;
    progress.at = now;
  }
  void all_say(std::uint64_t step) {
    for (std::size_t i = 0; i < kRanks; ++i) says(i, step);
  }
  void beat() {
    now = now + Duration::seconds(1);
    for (const RankReport& report : reports) {
      if (unheard.contains(report.process.rank)) continue;
      if (auto hung = watch().heard(HostId(0), report, now)) verdicts.push_back(std::move(*hung));
    }
  }
  void pass(std::int64_t seconds) {
    for (std::int64_t i = 0; i < seconds; ++i) beat();
  }
  ProgressWatch& watch() {
    if (!watch_) watch_.emplace(spec, [this](RankId rank) { return !ended.contains(rank); });
    return *watch_;
  }

  JobSpec spec;
  std::array<RankReport, kRanks> reports;
  std::vector<RankHung> verdicts;
  std::set<RankId> unheard;  // no beat says anything of them
  std::set<RankId> ended;
  Instant now = Instant::since_boot(Duration::seconds(1'000));

 private:
  std::optional<ProgressWatch> watch_;
};

HangPolicy restarts_after(const std::string& phase, Duration longest) {
  HangPolicy policy;
  policy.action = HangAction::kRestart;
  policy.phases[phase] = {.longest = longest, .written = true};
  return policy;
}

TEST_F(ProgressWatchTest, NeverJudgesARankThatSaysNothing) {
  pass(3'600);
  EXPECT_TRUE(verdicts.empty());
  EXPECT_TRUE(watch().never_spoke(MeshId(0)));
}

TEST_F(ProgressWatchTest, KeepsALimitOfSoManyPhasesAndOneOfAllOthers) {
  for (int i = 0; i < 200; ++i) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) says(rank, {}, "phase " + std::to_string(i));
    pass(i == 150 ? 50 : 1);
  }
  EXPECT_EQ(watch().limit_of(MeshId(0), GangId(0), "phase 7").longest, Duration::seconds(120));
  EXPECT_GT(watch().limit_of(MeshId(0), GangId(0), "phase 120").longest, Duration::seconds(400)) << "not one each";
}

TEST_F(ProgressWatchTest, ReportsOnceWhenNoStepComesAndAgainAfterTheNextSilence) {
  for (std::uint64_t step = 0; step < 5; ++step) {
    all_say(step);
    pass(10);
  }
  EXPECT_TRUE(verdicts.empty());
  pass(111);  // ten times the longest is less than the two minutes that every phase has
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].action, HangAction::kReport);
  EXPECT_EQ(verdicts[0].limit, Duration::seconds(120));
  pass(600);
  EXPECT_EQ(verdicts.size(), 1U);
  all_say(5);
  pass(1);
  EXPECT_EQ(watch().limit_of(MeshId(0), GangId(0), "step").longest, Duration::seconds(7'210));
  EXPECT_FALSE(watch().never_spoke(MeshId(0)));
}

// Found by monarch-sim: each word of another rank brought a dump of its stacks and a record.
TEST_F(ProgressWatchTest, ReportsARankOnceWhileOthersOfItsGangGetOn) {
  all_say(1);
  for (std::uint64_t step = 2; step < 400; ++step) {
    for (std::size_t rank = 1; rank < kRanks; ++rank) says(rank, step);
    pass(1);
  }
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].process.rank, id_of(0));
  says(0, 2);
  pass(1);
  for (std::uint64_t step = 400; step < 5'000; ++step) {
    for (std::size_t rank = 1; rank < kRanks; ++rank) says(rank, step);
    pass(1);
  }
  EXPECT_EQ(verdicts.size(), 2U) << "it moved on in between";
}

TEST_F(ProgressWatchTest, GivesTheFirstStepAsLongAsTheStart) {
  spec.meshes[0].supervision.hang.phases["init"] = {.longest = Duration::seconds(600)};
  all_say(0);
  pass(590);
  EXPECT_TRUE(verdicts.empty());
  pass(20);
  EXPECT_EQ(verdicts.size(), 1U);
}

TEST_F(ProgressWatchTest, NamesTheRankThatIsBehind) {
  all_say(7);
  pass(3);
  for (const std::size_t rank : {0U, 1U, 3U}) says(rank, 8);
  pass(200);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].process.rank, id_of(2));
  EXPECT_NE(verdicts[0].why.find("in phase step, step 7"), std::string::npos) << verdicts[0].why;
  EXPECT_NE(verdicts[0].why.find("3 others of its gang wait, too, up to step 8"), std::string::npos) << verdicts[0].why;
}

TEST_F(ProgressWatchTest, NamesTheRankThatStandsStillBeforeWhoIsBehind) {
  all_say(7);
  pass(3);
  says(0, 8);
  reports[3].standstill = Standstill::kStopped;
  pass(200);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].process.rank, id_of(3));
}

TEST_F(ProgressWatchTest, TakesAStepForTheEndOfAPhaseThatWasNotSaidAgain) {
  spec.meshes[0].supervision.hang.phases["checkpoint"] = {.longest = Duration::seconds(1'800)};
  all_say(1);
  pass(1);
  for (std::size_t i = 0; i < kRanks; ++i) says(i, std::nullopt, "checkpoint");
  pass(1'000);
  EXPECT_TRUE(verdicts.empty());
  all_say(2);
  pass(1);
  pass(400);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].phase, "step");
}

TEST_F(ProgressWatchTest, AgesNobodyByTimeInWhichTheHostWasNotHeard) {
  all_say(1);
  pass(60);
  now = now + Duration::seconds(3'600);
  beat();
  EXPECT_TRUE(verdicts.empty());
}

TEST_F(ProgressWatchTest, AgesNobodyWhoIsHeldByTheEndOfItsLease) {
  all_say(1);
  pass(60);
  for (RankReport& report : reports) report.held = true;
  pass(600);
  EXPECT_TRUE(verdicts.empty());
}

TEST_F(ProgressWatchTest, KeepsWhatABeatLeftOut) {
  all_say(1);
  pass(1);
  const RankProgress said = reports[0].progress;
  reports[0].progress = {};
  pass(100);
  reports[0].progress = said;
  pass(100);
  EXPECT_TRUE(verdicts.empty());
}

class RestartingWatch : public ProgressWatchTest {
 protected:
  RestartingWatch() : ProgressWatchTest(restarts_after("step", Duration::seconds(5))) {}
};

TEST_F(RestartingWatch, RestartsForADurationThatIsWrittenAndReportsForOneThatIsNot) {
  all_say(1);
  pass(7);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].action, HangAction::kRestart);
  EXPECT_EQ(verdicts[0].limit, Duration::seconds(5));
  verdicts.clear();
  for (std::size_t i = 0; i < kRanks; ++i) says(i, std::nullopt, "evaluate");
  pass(700);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].action, HangAction::kReport);
}

TEST_F(RestartingWatch, RestartsWhoIsStoppedFrozenOrInAnEndlessWait) {
  for (const auto& [standstill, seconds] :
       {std::pair(Standstill::kStopped, 4), std::pair(Standstill::kFrozen, 6), std::pair(Standstill::kWaiting, 1)}) {
    for (RankReport& report : reports) ++report.process.generation.counter;
    reports[1].standstill = Standstill::kNone;
    pass(1);
    EXPECT_TRUE(verdicts.empty());
    reports[1].standstill = standstill;
    pass(seconds);
    ASSERT_EQ(verdicts.size(), 1U);
    EXPECT_EQ(verdicts[0].process.rank, id_of(1));
    EXPECT_EQ(verdicts[0].action, HangAction::kRestart);
    verdicts.clear();
  }
}

TEST_F(RestartingWatch, NeverJudgesAGangOfWhichARankIsTraced) {
  all_say(1);
  pass(1);
  reports[2].standstill = Standstill::kTraced;
  pass(600);
  EXPECT_TRUE(verdicts.empty());
  reports[2].standstill = Standstill::kNone;
  pass(3);
  EXPECT_TRUE(verdicts.empty());
  pass(3);
  EXPECT_EQ(verdicts.size(), 1U);
}

TEST_F(RestartingWatch, LeavesAGangAloneWhileSomebodyHoldsARankOfIt) {
  all_say(1);
  pass(1);
  watch().hold(id_of(3));
  reports[3].standstill = Standstill::kStopped;
  pass(600);
  EXPECT_TRUE(verdicts.empty());
  watch().release(id_of(3));
  reports[3].standstill = Standstill::kNone;
  pass(6);
  EXPECT_EQ(verdicts.size(), 1U);
}

TEST_F(RestartingWatch, JudgesNobodyBeforeEachRankThatRunsWasHeard) {
  unheard = {id_of(1), id_of(3)};
  reports[0].standstill = Standstill::kWaiting;
  pass(3);
  EXPECT_TRUE(verdicts.empty());
  unheard.erase(id_of(1));
  pass(3);
  EXPECT_TRUE(verdicts.empty()) << "one of two is still missing";
  unheard.clear();
  reports[3].standstill = Standstill::kTraced;
  pass(3);
  EXPECT_TRUE(verdicts.empty()) << "somebody holds the last";
  reports[3].standstill = Standstill::kNone;
  pass(2);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].process.rank, id_of(0));
}

TEST_F(RestartingWatch, WaitsForNoRankThatHasEnded) {
  unheard = ended = {id_of(0), id_of(2)};
  reports[1].standstill = Standstill::kWaiting;
  pass(1);
  EXPECT_TRUE(verdicts.empty()) << "rank 3 was not heard before rank 1";
  pass(1);
  EXPECT_EQ(verdicts.size(), 1U);
}

TEST_F(RestartingWatch, HoldsAVerdictUntilItsRankSaysSomethingAndGivesItAgainWhereItWasRetracted) {
  all_say(1);
  pass(7);
  ASSERT_EQ(verdicts.size(), 1U);
  const std::size_t hung = verdicts[0].process.rank.rank.value();
  says((hung + 1) % kRanks, 9);  // another of its gang
  pass(1);
  EXPECT_TRUE(watch().holds(verdicts[0]));
  all_say(2);
  pass(1);
  EXPECT_FALSE(watch().holds(verdicts[0]));
  verdicts.clear();
  pass(7);
  ASSERT_EQ(verdicts.size(), 1U);
  pass(7);
  ASSERT_EQ(verdicts.size(), 1U);
  watch().retract(verdicts[0].process.rank);
  pass(1);
  EXPECT_EQ(verdicts.size(), 2U);
}

TEST_F(RestartingWatch, SaysNothingTwiceBecauseARankIsReleased) {
  all_say(1);
  pass(7);
  watch().hold(id_of(2));
  pass(7);
  watch().release(id_of(2));
  pass(60);
  EXPECT_EQ(verdicts.size(), 1U);
}

TEST_F(RestartingWatch, BeginsAnewWithTheNextGeneration) {
  all_say(1);
  pass(4);
  for (RankReport& report : reports) {
    ++report.process.generation.counter;
    report.progress = {};
  }
  pass(600);
  EXPECT_TRUE(verdicts.empty());
}

}  // namespace
}  // namespace monarch
