// JobCore: a rank that makes no progress.

#include <gtest/gtest.h>

#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;

RankHung hung(const Driver& driver, std::uint32_t rank, HangAction action) {
  const RankId id{MeshId(0), Rank(rank)};
  return {.host = driver.core.placement().host_of(id),
          .process = driver.report_of(id, RankPhase::kRunning).process,
          .why = "no word of it for 5s in phase step",
          .phase = "step",
          .waited = Duration::seconds(5),
          .limit = Duration::seconds(4),
          .action = action,
          .stacks = "main"};
}

std::vector<JobEvent> events_of(const std::vector<Action>& actions, EventKind kind) {
  std::vector<JobEvent> found;
  for (const Action& action : actions) {
    const auto* emitted = std::get_if<EmitEvent>(&action);
    if (emitted != nullptr && emitted->event.kind == kind) found.push_back(emitted->event);
  }
  return found;
}

TEST(JobCoreHang, TellsOfAHangAndStopsNothingByDefault) {
  Driver driver(fixtures::job_of(1, 2));
  driver.run_all();
  const auto actions = driver.step(hung(driver, 1, HangAction::kReport));
  const auto told = events_of(actions, EventKind::kRankHung);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].rank, 1U);
  EXPECT_EQ(told[0].pid, 1001);
  EXPECT_NE(told[0].message.find("no word of it for 5s in phase step"), std::string::npos) << told[0].message;
  EXPECT_NE(told[0].message.find("nothing is stopped"), std::string::npos) << told[0].message;
  EXPECT_EQ(told[0].details.back(), (std::pair<std::string, std::string>("stacks", "main")));
  EXPECT_EQ(Driver::count<SendStop>(actions), 0U);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kRunning);
}

TEST(JobCoreHang, SaysWhyARestartIsNoneWhereTheLimitIsNotWritten) {
  JobSpec spec = fixtures::job_of(1, 2);
  spec.meshes[0].supervision.hang.action = HangAction::kRestart;
  Driver driver(spec);
  driver.run_all();
  const auto told = events_of(driver.step(hung(driver, 1, HangAction::kReport)), EventKind::kRankHung);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].message.find("[hang.action: restart; the limit is not written: reported only]"), std::string::npos)
      << told[0].message;
}

TEST(JobCoreHang, StopsTheGangOfARankThatHangsAndNamesItAsTheCause) {
  Driver driver(fixtures::job_of(1, 2));
  driver.run_all();
  const auto actions = driver.step(hung(driver, 1, HangAction::kRestart));
  EXPECT_EQ(Driver::count<SendStop>(actions), 1U);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kFailing);
  driver.ended(0, fixtures::killed_by_us(9));
  const auto last = driver.ended(1, fixtures::killed_by_us(9));
  const auto failed = events_of(last, EventKind::kGangFailed);
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0].rank, 1U);
  EXPECT_NE(failed[0].message.find("made no progress: no word of it for 5s"), std::string::npos) << failed[0].message;
}

TEST(JobCoreHang, IgnoresWhatIsSaidOfAnEarlierGenerationOrOfAGangThatIsFailing) {
  Driver driver(fixtures::job_of(1, 2));
  driver.run_all();
  RankHung late = hung(driver, 1, HangAction::kRestart);
  --late.process.generation.counter;
  EXPECT_TRUE(driver.step(late).empty());
  driver.ended(0, fixtures::exited(7));
  EXPECT_TRUE(events_of(driver.step(hung(driver, 1, HangAction::kRestart)), EventKind::kRankHung).empty());
}

TEST(JobCoreHang, KeepsWhatSomebodyHoldsUntilItIsReleased) {
  Driver driver(fixtures::job_of(1, 2));
  driver.run_all();
  const RankId first{MeshId(0), Rank(0)};
  const RankId second{MeshId(0), Rank(1)};
  const auto held =
      events_of(driver.step(HoldAsked{.ranks = {second, first}, .who = "somebody"}), EventKind::kRanksHeld);
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held[0].message, "trainer/0-1: not watched for hangs until released, asked by somebody");
  driver.step(HoldAsked{.ranks = {first}, .who = "somebody"});
  EXPECT_EQ(state_parts::held(driver.core.state(), MeshId(0)), (std::vector<Rank>{Rank(0), Rank(1)}));
  const HoldAsked release{.wish = HoldWish::kRelease, .ranks = {first}, .who = "somebody"};
  const auto released = events_of(driver.step(release), EventKind::kRanksReleased);
  ASSERT_EQ(released.size(), 1U);
  EXPECT_EQ(released[0].message, "trainer/0: watched for hangs again, asked by somebody");
  EXPECT_EQ(released[0].rank, 0U);
  EXPECT_FALSE(is_left_alone(driver.core.facts(), first));
  EXPECT_TRUE(is_left_alone(driver.core.facts(), second));
}

TEST(JobCoreHang, NamesManyHeldRanksShortly) {
  JobSpec spec = fixtures::job_of(1, 24);
  spec.meshes.push_back(fixtures::mesh_of("side", {{"host", 1}, {"slot", 1}}, 1));
  Driver driver(spec);
  driver.run_all();
  HoldAsked hold{.ranks = {{MeshId(1), Rank(0)}}, .who = "somebody"};
  for (const std::uint32_t rank : {5U, 0U, 1U, 2U}) hold.ranks.push_back({MeshId(0), Rank(rank)});
  EXPECT_EQ(events_of(driver.step(hold), EventKind::kRanksHeld).at(0).message,
            "trainer/0-2,5 side/0: not watched for hangs until released, asked by somebody");
  HoldAsked odd{.who = "somebody"};
  for (std::uint32_t rank = 1; rank < 24; rank += 2) odd.ranks.push_back({MeshId(0), Rank(rank)});
  EXPECT_EQ(events_of(driver.step(odd), EventKind::kRanksHeld).at(0).message,
            "trainer/1,3,5,7,9,11,13,15 and 4 more: not watched for hangs until released, asked by somebody");
}

TEST(JobCoreHang, WatchesTheNextGenerationOfWhatASignalStoppedButNotOfWhatIsHeld) {
  JobSpec spec = fixtures::job_of(1, 2);
  spec.meshes[0].supervision.restart.max = 4;
  Driver driver(spec);
  driver.run_all();
  const RankId held{MeshId(0), Rank(0)};
  const RankId stopped{MeshId(0), Rank(1)};
  driver.step(HoldAsked{.ranks = {held}});
  EXPECT_TRUE(
      events_of(driver.step(HoldAsked{.wish = HoldWish::kStop, .ranks = {stopped}}), EventKind::kRanksHeld).empty());
  EXPECT_TRUE(is_left_alone(driver.core.facts(), stopped));
  EXPECT_FALSE(is_held(driver.core.facts(), stopped));
  driver.fail_gang(stopped, fixtures::exited(3));
  driver.start_again(0);
  ASSERT_EQ(driver.gang(0).phase, GangPhase::kRunning);
  EXPECT_FALSE(is_left_alone(driver.core.facts(), stopped));
  EXPECT_TRUE(is_left_alone(driver.core.facts(), held));
  driver.step(HoldAsked{.wish = HoldWish::kStop, .ranks = {stopped}});
  driver.step(HoldAsked{.wish = HoldWish::kContinue, .ranks = {stopped}});
  EXPECT_FALSE(is_left_alone(driver.core.facts(), stopped));
}

}  // namespace
}  // namespace monarch
