#include "supervisor/workers/hang_watch.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>

#include "supervisor/journal/core_records.h"
#include "tests/supervisor/core/fixtures.h"
#include "transport/base/limits.h"

namespace monarch {
namespace {

using fixtures::Driver;

constexpr RankId kRank{MeshId(0), Rank(1)};
constexpr RankId kOther{MeshId(0), Rank(0)};

class HangWatchTest : public ::testing::Test {
 protected:
  HangWatchTest() : driver(restarting()) {
    driver.run_all();
    begin();
  }
  void begin() {
    watch.emplace(driver.core, HangWatchHandlers{
                                   .decide =
                                       [this](const CoreEvent& event) {
                                         decided.push_back(event);
                                         if (std::holds_alternative<HoldAsked>(event)) driver.step(event);
                                       },
                                   .dump =
                                       [this](RankId rank, std::function<void(std::string)> then) {
                                         asked.push_back(rank);
                                         answer = std::move(then);
                                       },
                               });
  }
  static JobSpec restarting() {
    JobSpec spec = fixtures::job_of(1, 2);
    spec.meshes[0].supervision.hang.action = HangAction::kRestart;
    return spec;
  }
  void beats(Standstill standstill, int seconds = 1, std::optional<std::uint64_t> step = {}) {
    for (int i = 0; i < seconds; ++i) {
      now = now + Duration::seconds(1);
      RankReport report = driver.report_of(kRank, RankPhase::kRunning);
      report.standstill = standstill;
      if (step) report.progress = {.step = step, .at = now};
      RankReport other = driver.report_of(kOther, RankPhase::kRunning);
      other.standstill = of_other;
      watch->on_report(HostId(0), other, now, now);
      watch->on_report(HostId(0), report, now, now);
    }
  }
  std::vector<JobEvent> told(EventKind kind) const {
    std::vector<JobEvent> found;
    for (const CoreEvent& event : decided) {
      const auto* one = std::get_if<PeopleTold>(&event);
      if (one != nullptr && one->event.kind == kind) found.push_back(one->event);
    }
    return found;
  }
  std::size_t hangs() const {
    std::size_t count = 0;
    for (const CoreEvent& event : decided) count += std::holds_alternative<RankHung>(event) ? 1U : 0U;
    return count;
  }

  Driver driver;
  std::optional<HangWatch> watch;
  Standstill of_other = Standstill::kNone;
  std::vector<CoreEvent> decided;
  std::vector<RankId> asked;
  std::function<void(std::string)> answer;
  Instant now = Instant::since_boot(Duration::seconds(5'000));
};

TEST_F(HangWatchTest, TellsOnceWhenARankStopsAndWhenItGoesOn) {
  beats(Standstill::kNone, 2);
  beats(Standstill::kStopped, 2);
  ASSERT_EQ(told(EventKind::kRankStopped).size(), 1U);
  EXPECT_EQ(told(EventKind::kRankStopped)[0].severity, Severity::kWarning);
  EXPECT_NE(told(EventKind::kRankStopped)[0].message.find("is stopped by a signal"), std::string::npos);
  beats(Standstill::kNone, 2);
  ASSERT_EQ(told(EventKind::kRankContinued).size(), 1U);
  EXPECT_NE(told(EventKind::kRankContinued)[0].message.find("goes on, after 2s"), std::string::npos);
}

TEST_F(HangWatchTest, SaysNothingOfARankThatGoesOnBecauseItsGangIsStopped) {
  beats(Standstill::kStopped, 6);
  answer("main.c:4");
  driver.step(decided.back());
  beats(Standstill::kNone);
  EXPECT_EQ(told(EventKind::kRankContinued).size(), 0U);
}

TEST_F(HangWatchTest, TakesTheStacksBeforeTheCoreHears) {
  beats(Standstill::kStopped, 6);
  ASSERT_EQ(asked, std::vector<RankId>{kRank});
  EXPECT_EQ(hangs(), 0U);
  answer("main.c:4");
  ASSERT_EQ(hangs(), 1U);
  EXPECT_EQ(std::get<RankHung>(decided.back()).stacks, "main.c:4");
}

TEST_F(HangWatchTest, LeavesAloneWhatSomebodyStoppedUntilItIsLetGo) {
  watch->signalled({kRank}, SIGSTOP);
  beats(Standstill::kStopped, 60);
  EXPECT_EQ(told(EventKind::kRankStopped)[0].severity, Severity::kInfo);
  watch->signalled({kRank}, SIGCONT);
  beats(Standstill::kNone, 2);
  EXPECT_EQ(watch->hold({.ranks = {kRank}, .who = "me"}), "1 rank not watched for hangs until monarch hold --release");
  EXPECT_EQ(watch->hold({.ranks = {kRank}, .who = "me"}), "1 rank: held already");
  EXPECT_TRUE(is_left_alone(driver.core.facts(), kRank));
  beats(Standstill::kStopped, 60);
  EXPECT_TRUE(asked.empty());
  EXPECT_EQ(watch->hold({.ranks = {kRank}, .release = true, .who = "me"}), "1 rank watched for hangs again");
  beats(Standstill::kStopped, 6);
  EXPECT_EQ(asked.size(), 1U);
}

TEST_F(HangWatchTest, ForgetsAVerdictWhenTheRankIsHeldWhileItsStacksAreTaken) {
  beats(Standstill::kStopped, 6);
  ASSERT_TRUE(answer);
  (void)watch->hold({.ranks = {kOther}, .who = "me"});  // of the same gang
  answer("");
  EXPECT_EQ(hangs(), 0U);
  (void)watch->hold({.ranks = {kOther}, .release = true, .who = "me"});
  beats(Standstill::kStopped, 6);
  EXPECT_EQ(asked.size(), 2U) << "it was not told of, and must be once nobody holds it";
}

TEST_F(HangWatchTest, FailsNobodyWhoMovedOnWhileItsStacksWereTaken) {
  beats(Standstill::kStopped, 6);
  ASSERT_EQ(asked.size(), 1U);
  beats(Standstill::kNone);
  answer("main.c:4");
  EXPECT_EQ(hangs(), 0U) << "it goes on";
  beats(Standstill::kStopped, 6);
  ASSERT_EQ(asked.size(), 2U);
  beats(Standstill::kNone, 1, 17);
  beats(Standstill::kStopped);
  answer("main.c:4");
  EXPECT_EQ(hangs(), 0U) << "it stands again, and has said a step in between";
  beats(Standstill::kStopped, 6);
  ASSERT_EQ(asked.size(), 3U);
  answer("main.c:4");
  EXPECT_EQ(hangs(), 1U);
}

TEST_F(HangWatchTest, GivesAVerdictAgainOnceTheDebuggerForWhichItWasDroppedIsGone) {
  beats(Standstill::kStopped, 6);
  ASSERT_EQ(asked.size(), 1U);
  beats(Standstill::kTraced);
  answer("");
  EXPECT_EQ(hangs(), 0U);
  beats(Standstill::kTraced, 60);
  EXPECT_EQ(asked.size(), 1U);
  beats(Standstill::kStopped, 6);
  ASSERT_EQ(asked.size(), 2U);
  answer("");
  EXPECT_EQ(hangs(), 1U);
}

TEST_F(HangWatchTest, TellsOfAHangOnceThoughItsRankIsHeldAndReleased) {
  beats(Standstill::kStopped, 6);
  answer("");
  ASSERT_EQ(hangs(), 1U);
  (void)watch->hold({.ranks = {kRank}, .who = "me"});
  beats(Standstill::kStopped, 6);
  (void)watch->hold({.ranks = {kRank}, .release = true, .who = "me"});
  beats(Standstill::kStopped, 60);
  EXPECT_EQ(asked.size(), 1U);
}

// Found by monarch-sim: the gang was left alone until its next generation.
TEST_F(HangWatchTest, WatchesAGangAgainOnceTheRankThatWasTracedHasEnded) {
  of_other = Standstill::kTraced;
  beats(Standstill::kStopped, 6);
  EXPECT_TRUE(asked.empty());
  driver.ended(kOther.rank.value(), {.kind = EndKind::kExited, .value = 0});
  beats(Standstill::kStopped, 6);
  EXPECT_EQ(asked, std::vector<RankId>{kRank});
}

TEST(HangWatchOfMany, AsksForNoMoreRanksAtOnceThanARecordOfTheJournalHolds) {
  Driver driver(fixtures::job_of(1, 10'000));
  std::size_t ranks = 0;
  HangWatch watch(driver.core, {.decide = [&](const CoreEvent& event) {
                    ranks += std::get<HoldAsked>(event).ranks.size();
                    EXPECT_LT(encode_core_event(event).size(), limits::kJournalPayloadBytes);
                  }});
  HoldRequest request{.who = "me"};
  for (std::uint32_t rank = 0; rank < 10'000; ++rank) request.ranks.push_back({MeshId(0), Rank(rank)});
  (void)watch.hold(request);
  EXPECT_EQ(ranks, 10'000U);
  watch.signalled(request.ranks, SIGSTOP);
  EXPECT_EQ(ranks, 20'000U);
}

TEST_F(HangWatchTest, LeavesAloneAfterTheSupervisorsReturnWhatSomebodyHeldBeforeIt) {
  watch->signalled({kRank}, SIGTSTP);
  begin();
  beats(Standstill::kStopped, 60);
  watch->signalled({kRank}, SIGCONT);
  (void)watch->hold({.ranks = {kOther}, .who = "me"});
  begin();
  beats(Standstill::kStopped, 60);
  EXPECT_TRUE(asked.empty());
  EXPECT_EQ(watch->hold({.ranks = {kOther}, .release = true, .who = "me"}), "1 rank watched for hangs again");
  beats(Standstill::kStopped, 6);
  EXPECT_EQ(asked.size(), 1U);
}

TEST_F(HangWatchTest, WritesNoMoreThanTwentyChangesInTenMinutes) {
  for (int i = 0; i < 100; ++i) beats(i % 2 == 0 ? Standstill::kStopped : Standstill::kNone);
  EXPECT_EQ(told(EventKind::kRankStopped).size() + told(EventKind::kRankContinued).size(), 20U);
}

TEST_F(HangWatchTest, SaysOnceThatAMeshIsNotWatched) {
  beats(Standstill::kNone, 59);
  EXPECT_TRUE(told(EventKind::kMeshUnwatched).empty());
  beats(Standstill::kNone, 600);
  EXPECT_EQ(told(EventKind::kMeshUnwatched).size(), 1U);
}

}  // namespace
}  // namespace monarch
