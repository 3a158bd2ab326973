// How a KeeperCore ends: told to shut down, by TERM, with something left.

#include <gtest/gtest.h>

#include <csignal>

#include "tests/worker/core/keeper_core_driver.h"

namespace monarch::keeper_core_test {
namespace {

TEST(KeeperCore, LeavesInOrderWithTheCodeThatItWasTold) {
  Keeper keeper(KeeperKind::kGuard);
  keeper.send(event::Spawn{key(1, 1), {}});
  EXPECT_TRUE(all_of<action::KillTree>(keeper.send(KeeperShutdown{7})).empty()) << "it may end by itself";
  EXPECT_TRUE(all_of<action::Exit>(keeper.leave(0)).empty());
  const auto exits = all_of<action::Exit>(keeper.end(1, 1));
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_EQ(exits[0].code, 7);
}

TEST(KeeperCore, KillsASpawnedProcessThatDoesNotEndAfterTheShutdown) {
  Keeper keeper(KeeperKind::kGuard);
  keeper.send(event::Spawn{key(1, 1), {}});
  keeper.send(KeeperShutdown{0});
  keeper.leave(0);
  EXPECT_TRUE(all_of<action::KillTree>(keeper.run_to(1'999)).empty());
  EXPECT_EQ(all_of<action::KillTree>(keeper.run_to(2'000)).size(), 1U);
}

TEST(KeeperCore, KillsWhatServedAWorkersRanksAtTheShutdown) {
  Keeper keeper;
  keeper.send(event::Spawn{key(1, 1), {}});
  EXPECT_EQ(all_of<action::KillTree>(keeper.send(KeeperShutdown{0})).size(), 1U);
}

TEST(KeeperCore, LetsWhatServesAWorkersRanksBeUntilTheLastOfThemHasEnded) {
  Keeper keeper;
  keeper.start(1, 1);
  keeper.run_rank(0, 1, 600'000);
  keeper.send(event::Spawn{key(9, 1), {}});
  const KeeperActions told = keeper.send(event::Terminated{SIGTERM});
  for (const action::SignalRank& signal : all_of<action::SignalRank>(told)) EXPECT_EQ(signal.key, key(0, 1));
  EXPECT_TRUE(all_of<action::KillTree>(told).empty());
  const auto killed = all_of<action::KillTree>(keeper.end(0, 1));
  ASSERT_EQ(killed.size(), 1U);
  EXPECT_EQ(killed[0].key, key(9, 1));
}

// The kernel takes its time to give a vault's memory back; that is not wedged.
TEST(KeeperCore, WaitsForAServantAsLongAsItsMemoryMayTake) {
  Keeper keeper;
  keeper.send(event::Spawn{key(9, 1), {.memory_patience = Duration::seconds(3)}});
  keeper.send(KeeperShutdown{0});
  EXPECT_TRUE(all_of<action::TellEnded>(keeper.run_to(4'999)).empty());
  const auto ended = all_of<action::TellEnded>(keeper.run_to(5'000));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].wedged, 1U);
}

TEST(KeeperCore, PassesATermOnToTheGuardedProcessOfAGuard) {
  Keeper keeper(KeeperKind::kGuard);
  const KeeperActions actions = keeper.send(event::Terminated{SIGTERM});
  ASSERT_EQ(all_of<action::SignalGuarded>(actions).size(), 1U);
  EXPECT_FALSE(keeper.core().ending());
}

// A signal that comes before the process reads signals ends it, as it would any other.
TEST(KeeperCore, StartsNoneAgainThatEndedByTheTermThatWasPassedOn) {
  Keeper keeper(KeeperKind::kGuard);
  keeper.send(event::Terminated{SIGTERM});
  const KeeperActions told = keeper.crash(SIGTERM);
  ASSERT_EQ(all_of<action::Exit>(told).size(), 1U);
  EXPECT_EQ(all_of<action::Exit>(told)[0].code, 128 + SIGTERM);
  EXPECT_TRUE(all_of<action::ForkGuarded>(told).empty());
  Keeper other(KeeperKind::kGuard);
  EXPECT_EQ(all_of<action::ForkGuarded>(other.crash(SIGTERM)).size(), 1U) << "nobody told the guard";
}

// What runs elsewhere has nobody else.
TEST(KeeperCore, StartsOneAgainThatCrashedWhileItStoppedTheJob) {
  Keeper keeper(KeeperKind::kGuard);
  keeper.send(event::Terminated{SIGTERM});
  const KeeperActions told = keeper.crash(SIGKILL);
  EXPECT_EQ(all_of<action::ForkGuarded>(told).size(), 1U);
  EXPECT_TRUE(all_of<action::Exit>(told).empty());
}

TEST(KeeperCore, EndsWhatItKeepsWhereATermWasNotHeard) {
  Keeper keeper(KeeperKind::kGuard);
  keeper.send(event::Spawn{key(0, 1), {}});
  keeper.send(event::Terminated{SIGTERM});
  const KeeperActions told = keeper.crash(SIGTERM);
  EXPECT_FALSE(all_of<action::SignalRank>(told).empty());
  EXPECT_EQ(all_of<action::ForkGuarded>(told).size(), 1U) << "who ends the job";
}

// What it keeps may carry what lives elsewhere, which somebody comes back to.
TEST(KeeperCore, LeavesAloneWhatIsToLiveOnWhenItsSupervisorsAreSpent) {
  Keeper keeper(KeeperKind::kGuard, {.restarts = 0});
  keeper.send(event::Spawn{key(1, 1), {}});
  keeper.send(event::Spawn{key(2, 1), {}});
  keeper.send(KeeperLetLive{{rank_id(1), generation(1)}});
  const KeeperActions given_up = keeper.crash();
  const auto killed = all_of<action::KillTree>(given_up);
  ASSERT_EQ(killed.size(), 1U);
  EXPECT_EQ(killed[0].key, key(2, 1));
  EXPECT_TRUE(all_of<action::Exit>(given_up).empty());
  const KeeperActions last = keeper.end(2, 1);
  ASSERT_EQ(all_of<action::KillDescendants>(last).size(), 1U);
  EXPECT_EQ(all_of<action::KillDescendants>(last)[0].spared, std::vector<std::int32_t>{200});
  EXPECT_EQ(all_of<action::Exit>(last).size(), 1U);
}

TEST(KeeperCore, LeavesAloneWhatIsToLiveOnAtATermBetweenTwoSupervisors) {
  Keeper keeper(KeeperKind::kGuard);
  keeper.send(event::Spawn{key(1, 1), {}});
  keeper.send(KeeperLetLive{{rank_id(1), generation(1)}});
  keeper.crash();
  keeper.send(event::GuardedSpoke{});
  keeper.crash();
  const KeeperActions told = keeper.send(event::Terminated{SIGTERM});
  EXPECT_TRUE(all_of<action::SignalRank>(told).empty());
  ASSERT_EQ(all_of<action::KillDescendants>(told).size(), 1U);
  EXPECT_EQ(all_of<action::KillDescendants>(told)[0].spared, std::vector<std::int32_t>{200});
}

TEST(KeeperCore, KeepsNothingAliveBeyondItsJob) {
  Keeper keeper(KeeperKind::kGuard);
  keeper.send(event::Spawn{key(1, 1), {}});
  keeper.send(KeeperLetLive{{rank_id(1), generation(1)}});
  EXPECT_TRUE(all_of<action::KillTree>(keeper.send(KeeperShutdown{0})).empty()) << "it may end by itself";
  keeper.leave(0);
  EXPECT_EQ(all_of<action::KillTree>(keeper.run_to(2'000)).size(), 1U);
  for (const auto& rest : all_of<action::KillDescendants>(keeper.end(1, 1))) EXPECT_TRUE(rest.spared.empty());
}

TEST(KeeperCore, DoesNotWaitForOneThatWasToLiveOnAndHasEnded) {
  Keeper keeper(KeeperKind::kGuard, {.restarts = 0});
  keeper.send(event::Spawn{key(1, 1), {}});
  keeper.send(KeeperLetLive{{rank_id(1), generation(1)}});
  keeper.end(1, 1);
  const KeeperActions last = keeper.crash();
  ASSERT_EQ(all_of<action::KillDescendants>(last).size(), 1U);
  EXPECT_TRUE(all_of<action::KillDescendants>(last)[0].spared.empty());
}

TEST(KeeperCore, EndsAsTheJobDidAlsoWhenItsTermCameBetweenTwoSupervisors) {
  Keeper keeper(KeeperKind::kGuard);
  keeper.send(event::Spawn{key(0, 1), {}});
  keeper.crash();
  keeper.send(event::GuardedSpoke{});
  keeper.crash();  // the next one is started after a back-off
  keeper.send(event::Terminated{SIGTERM});
  keeper.run_to(500);
  keeper.send(event::GuardedSpoke{});
  keeper.send(KeeperShutdown{.exit_code = 70});
  keeper.end(0, 1);
  const auto exits = all_of<action::Exit>(keeper.leave(70));
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_EQ(exits[0].code, 70);
}

TEST(KeeperCore, StopsItsRanksInOrderAtATermAndThenLeaves) {
  Keeper keeper;
  keeper.start(1, 1);
  keeper.run_rank(0, 1, 60'000);
  const KeeperActions actions = keeper.send(event::Terminated{SIGTERM});
  EXPECT_EQ(all_of<action::SignalRank>(actions).size(), 2U);
  EXPECT_TRUE(all_of<action::SignalGuarded>(actions).empty()) << "its daemon hears of every end first";
  EXPECT_EQ(all_of<action::SignalGuarded>(keeper.end(0, 1)).size(), 1U);
  const auto exits = all_of<action::Exit>(keeper.leave(0));
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_EQ(exits[0].code, 128 + SIGTERM);
}

TEST(KeeperCore, KillsAtASecondTerm) {
  Keeper keeper;
  keeper.start(1, 1);
  keeper.run_rank(0, 1, 60'000);
  keeper.send(event::Terminated{SIGTERM});
  EXPECT_EQ(all_of<action::KillRank>(keeper.send(event::Terminated{SIGTERM})).size(), 1U);
}

TEST(KeeperCore, TellsATermThatForetellsItsEndAndGoesOn) {
  Keeper keeper(KeeperOptions{.term_foretells = true});
  keeper.start(1, 1);
  keeper.run_rank(0, 1, 60'000);
  for (const std::uint32_t times : {1U, 2U}) {
    const KeeperActions actions = keeper.send(event::Terminated{SIGTERM});
    ASSERT_EQ(actions.size(), 1U) << "nobody is stopped for it";
    EXPECT_EQ(std::get<action::TellWarned>(actions[0]).warnings, times);
  }
  EXPECT_FALSE(keeper.core().ending());
  EXPECT_TRUE(all_of<action::SignalRank>(keeper.send(event::Terminated{SIGINT})).size() > 0) << "that is no such word";
}

TEST(KeeperCore, EndsWhatIsHeldOnceItsEndIsForetold) {
  Keeper keeper(KeeperOptions{.term_foretells = true});
  keeper.start(1, 1);
  keeper.run_rank(0, 1, 10'000);
  ASSERT_EQ(all_of<action::FreezeTree>(keeper.run_to(16'000)).size(), 1U);
  EXPECT_EQ(all_of<action::KillTree>(keeper.send(event::Terminated{SIGTERM})).size(), 1U);
}

TEST(KeeperCore, HoldsForAMomentWhatIsToEnd) {
  Keeper keeper(KeeperOptions{.term_foretells = true});
  keeper.start(1, 1);
  keeper.run_rank(0, 1, 10'000);
  EXPECT_TRUE(all_of<action::KillTree>(keeper.send(event::Terminated{SIGTERM})).empty()) << "its lease lasts";
  const KeeperActions held = keeper.run_to(14'000);
  EXPECT_EQ(all_of<action::FreezeTree>(held).size(), 1U);
  EXPECT_TRUE(all_of<action::KillTree>(held).empty()) << "its supervisor may come back";
  EXPECT_EQ(all_of<action::KillTree>(keeper.run_to(15'000)).size(), 1U);
}

TEST(KeeperCore, ThawsWhatIsLeasedAgainAlsoWhereItsEndWasForetold) {
  Keeper keeper(KeeperOptions{.term_foretells = true});
  keeper.start(1, 1);
  keeper.run_rank(0, 1, 10'000);
  keeper.send(event::Terminated{SIGTERM});
  keeper.run_to(12'000);
  EXPECT_EQ(all_of<action::ThawTree>(keeper.lease(0, 1, 30'000)).size(), 1U);
  EXPECT_TRUE(all_of<action::KillTree>(keeper.run_to(29'000)).empty());
}

TEST(KeeperCore, HoldsAgainWhereNothingCameOfWhatWasForetold) {
  Keeper keeper(KeeperOptions{.term_foretells = true});
  keeper.start(1, 1);
  keeper.run_rank(0, 1, 400'000);
  keeper.send(event::Terminated{SIGTERM});
  keeper.run_to(390'000);
  keeper.lease(0, 1, 410'000);
  const KeeperActions held = keeper.run_to(411'000);
  EXPECT_EQ(all_of<action::FreezeTree>(held).size(), 1U);
  EXPECT_TRUE(all_of<action::KillTree>(held).empty());
}

TEST(KeeperCore, TellsTheNextDaemonHowOftenItsEndWasForetold) {
  Keeper keeper(KeeperOptions{.term_foretells = true});
  keeper.send(event::Terminated{SIGTERM});
  KeeperActions actions = keeper.crash();
  const KeeperActions later = keeper.run_to(10'000);
  actions.insert(actions.end(), later.begin(), later.end());
  const auto hellos = all_of<action::SayHello>(actions);
  ASSERT_FALSE(hellos.empty());
  EXPECT_EQ(hellos.front().hello.warnings, 1U);
}

TEST(KeeperCore, StartsNothingOnceItIsEnding) {
  Keeper keeper;
  keeper.start(1, 1);
  keeper.send(KeeperShutdown{0});
  EXPECT_EQ(all_of<action::Refused>(keeper.start(2, 2)).size(), 2U);
}

TEST(KeeperCore, LeavesEvenIfSomethingIsWedged) {
  Keeper keeper;
  keeper.start(1, 1);
  keeper.run_rank(0, 1, 60'000);
  keeper.send(KeeperShutdown{0});
  keeper.leave(0);
  const auto exits = all_of<action::Exit>(keeper.run_to(2'000));
  ASSERT_EQ(exits.size(), 1U);
}

}  // namespace
}  // namespace monarch::keeper_core_test
