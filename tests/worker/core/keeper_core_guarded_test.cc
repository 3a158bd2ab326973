// KeeperCore and the process that it guards: pings, restarts, what the next one is told.

#include <gtest/gtest.h>

#include <csignal>
#include <vector>

#include "tests/worker/core/keeper_core_driver.h"

namespace monarch::keeper_core_test {
namespace {

TEST(KeeperCore, KillsADeafGuardedProcessAfterTwoSeconds) {
  Keeper keeper;
  keeper.run_to(1'000);
  EXPECT_TRUE(all_of<action::KillGuarded>(keeper.run_to(2'900, true)).empty());
  EXPECT_EQ(all_of<action::KillGuarded>(keeper.run_to(3'000, true)).size(), 1U);
}

TEST(KeeperCore, DoesNotKillWhatGoesOnAndHasNoTimeToAnswer) {
  Keeper keeper;
  keeper.run_to(1'000);
  KeeperActions actions;
  for (std::uint64_t second = 2; second <= 30; ++second) {
    keeper.send(event::GuardedSteps{second});
    for (KeeperAction& one : keeper.run_to(static_cast<std::int64_t>(second) * 1'000, true)) actions.push_back(one);
  }
  EXPECT_TRUE(all_of<action::KillGuarded>(actions).empty());
  keeper.send(event::GuardedSteps{30});
  EXPECT_EQ(all_of<action::KillGuarded>(keeper.run_to(31'000, true)).size(), 1U) << "it goes on no more";
}

TEST(KeeperCore, DoesNotTakeTheStepsOfOneThatIsGoingForAReasonToKeepIt) {
  Keeper keeper;
  keeper.run_to(1'000);
  keeper.send(event::GuardedHungUp{});
  EXPECT_TRUE(all_of<action::Ping>(keeper.run_to(1'400)).empty());
  EXPECT_EQ(all_of<action::KillGuarded>(keeper.run_to(1'500)).size(), 1U);
}

TEST(KeeperCore, ItsOwnStallIsNotHeldAgainstTheGuardedProcess) {
  Keeper keeper;
  keeper.run_to(1'000);
  keeper.stall_to(60'000);
  EXPECT_TRUE(all_of<action::KillGuarded>(keeper.send(event::Tick{})).empty());
  EXPECT_TRUE(all_of<action::KillGuarded>(keeper.run_to(61'000, true)).empty());
  EXPECT_EQ(all_of<action::KillGuarded>(keeper.run_to(63'000, true)).size(), 1U);
}

TEST(KeeperCore, StartsACrashedGuardedProcessAtOnceAndThenLaterAndLater) {
  Keeper keeper;
  EXPECT_EQ(all_of<action::ForkGuarded>(keeper.crash()).size(), 1U);
  EXPECT_TRUE(all_of<action::ForkGuarded>(keeper.crash()).empty());
  EXPECT_EQ(all_of<action::ForkGuarded>(keeper.run_to(500)).size(), 1U);
  keeper.crash();
  EXPECT_TRUE(all_of<action::ForkGuarded>(keeper.run_to(1'499)).empty());
  EXPECT_EQ(all_of<action::ForkGuarded>(keeper.run_to(1'500)).size(), 1U);
}

TEST(KeeperCore, TellsANewGuardedProcessWhatItKeeps) {
  Keeper keeper;
  keeper.start(2, 1);
  keeper.run_rank(0, 1, 60'000);
  keeper.send(event::Spawn{key(9, 1), {}});
  keeper.end(1, 1);
  const KeeperActions actions = keeper.crash();
  const auto hello = all_of<action::SayHello>(actions);
  ASSERT_EQ(hello.size(), 1U);
  EXPECT_EQ(hello[0].hello.starts, 2U);
  ASSERT_EQ(hello[0].hello.ranks.size(), 2U);
  EXPECT_EQ(hello[0].hello.ranks[0].phase, RankPhase::kRunning);
  EXPECT_EQ(hello[0].hello.ranks[1].phase, RankPhase::kEnded);
  EXPECT_EQ(hello[0].hello.spawned, std::vector<RankId>{rank_id(9)});
  EXPECT_EQ(all_of<action::Pipes>(actions).size(), 2U) << "of the ended rank too: its output may not be read yet";
}

TEST(KeeperCore, ReportsTheEndOfASpawnedProcessAgainToWhoWasNotThere) {
  Keeper keeper;
  keeper.send(event::Spawn{key(9, 1), {}});
  keeper.crash();
  keeper.crash();  // nobody is there until the back-off is over
  EXPECT_EQ(all_of<action::Report>(keeper.end(9, 1)).size(), 1U);
  const auto reports = all_of<action::Report>(keeper.run_to(500));
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].report.phase, RankPhase::kEnded);
}

TEST(KeeperCore, GivesUpAfterFiveRestartsInTenMinutesAndKillsWhatItKeeps) {
  Keeper keeper;
  keeper.start(1, 1);
  keeper.run_rank(0, 1, 600'000);
  for (int crash = 1; crash <= 5; ++crash) {
    EXPECT_TRUE(all_of<action::KillRank>(keeper.crash()).empty());
    keeper.run_to(keeper.now().since_boot().count_milliseconds() + 10'000);
  }
  EXPECT_EQ(all_of<action::KillRank>(keeper.crash()).size(), 1U);
  const auto exits = all_of<action::Exit>(keeper.end(0, 1));
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_EQ(exits[0].code, 70);
}

TEST(KeeperCore, EndsWithAFinalCodeInsteadOfStartingTheGuardedProcessAgain) {
  Keeper keeper(KeeperKind::kGuard, {.final_codes = {74, 75}});
  keeper.send(event::Spawn{key(1, 1), {}});
  EXPECT_EQ(all_of<action::ForkGuarded>(keeper.leave(73)).size(), 1U) << "any other code is a crash";
  keeper.send(event::GuardedSpoke{});
  const KeeperActions actions = keeper.leave(75);
  EXPECT_TRUE(all_of<action::ForkGuarded>(actions).empty());
  EXPECT_EQ(all_of<action::KillTree>(actions).size(), 1U) << "what it keeps ends with it";
  const auto exits = all_of<action::Exit>(keeper.end(1, 1));
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_EQ(exits[0].code, 75);
}

TEST(KeeperCore, TakesASignalWithTheNumberOfAFinalCodeForACrash) {
  Keeper keeper(KeeperKind::kGuard, {.final_codes = {SIGSEGV}});
  EXPECT_EQ(all_of<action::ForkGuarded>(keeper.crash()).size(), 1U);
}

TEST(KeeperCore, CountsOnlyTheCrashesOfTheWindow) {
  Keeper keeper;
  for (int crash = 1; crash <= 20; ++crash) {
    EXPECT_FALSE(keeper.core().ending());
    keeper.crash();
    keeper.run_to(keeper.now().since_boot().count_milliseconds() + 121'000);
  }
  EXPECT_EQ(keeper.core().guarded().starts(), 21U);
}

TEST(KeeperCore, ExitsAsTheGuardedProcessDidBeforeItEverSpoke) {
  KeeperCore core({.kind = KeeperKind::kGuard, .guarded = {}});
  core.step(event::Tick{}, at(0));
  core.step(event::GuardedForked{7}, at(0));
  RankEnd end;
  end.kind = EndKind::kSignaled;
  end.value = SIGABRT;
  const auto exits = all_of<action::Exit>(core.step(event::GuardedExited{end}, at(100)));
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_EQ(exits[0].code, 134);
}

}  // namespace
}  // namespace monarch::keeper_core_test
