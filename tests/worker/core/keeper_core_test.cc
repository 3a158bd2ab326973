#include "worker/core/keeper_core.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <vector>

namespace monarch {
namespace {

namespace event = keeper_event;
namespace action = keeper_action;

Instant at(std::int64_t milliseconds) { return Instant::since_boot(Duration::milliseconds(milliseconds)); }
RankId rank_id(std::uint32_t rank) { return {MeshId(0), Rank(rank)}; }
Generation generation(std::uint64_t counter) { return {Term(1), counter}; }
Incarnation key(std::uint32_t rank, std::uint64_t counter) { return {rank_id(rank), generation(counter)}; }

template <class Action>
std::vector<Action> all_of(const KeeperActions& actions) {
  std::vector<Action> found;
  for (const KeeperAction& one : actions) {
    if (const auto* match = std::get_if<Action>(&one)) found.push_back(*match);
  }
  return found;
}

// A core whose forks succeed at once, on a clock that goes forward in steps of 100 ms with all ticks due in between.
class Keeper {
 public:
  explicit Keeper(KeeperKind kind = KeeperKind::kWorker, const GuardedOptions& guarded = {})
      : core_({.kind = kind, .guarded = guarded}) {
    send(event::Tick{});
    send(event::GuardedSpoke{});
  }

  KeeperActions send(const KeeperEvent& happened) {
    KeeperActions actions = core_.step(happened, now_);
    KeeperActions all = actions;
    for (const KeeperAction& one : actions) {
      KeeperActions more;
      if (const auto* rank = std::get_if<action::ForkRank>(&one)) more = send(event::Forked{rank->key, 100});
      if (const auto* spawned = std::get_if<action::ForkSpawned>(&one)) more = send(event::Forked{spawned->key, 200});
      if (std::holds_alternative<action::ForkGuarded>(one)) more = send(event::GuardedForked{10});
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }

  // Ticks whenever one is due; the guarded process answers its pings unless it is deaf.
  KeeperActions run_to(std::int64_t milliseconds, bool deaf = false) {
    KeeperActions all;
    while (core_.next_due() <= at(milliseconds)) {
      now_ = std::max(now_, core_.next_due());
      KeeperActions actions = send(event::Tick{});
      for (const action::Ping& ping : all_of<action::Ping>(actions)) {
        if (!deaf) send(event::GuardedPong{ping.number});
      }
      all.insert(all.end(), actions.begin(), actions.end());
    }
    now_ = at(milliseconds);
    return all;
  }
  // Time passes and the keeper does not run.
  void stall_to(std::int64_t milliseconds) { now_ = at(milliseconds); }

  KeeperActions start(std::uint32_t ranks, std::uint64_t counter) {
    Start order;
    order.generation = generation(counter);
    order.program = {"true"};
    order.orphan_ttl = Duration::seconds(60);
    order.stop_grace = Duration::seconds(5);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) order.ranks.push_back({rank_id(rank), {}});
    return send(order);
  }
  KeeperActions lease(std::uint32_t rank, std::uint64_t counter, std::int64_t until) {
    return send(KeeperLease{{rank_id(rank)}, {generation(counter)}, at(until)});
  }
  void run_rank(std::uint32_t rank, std::uint64_t counter, std::int64_t until) {
    lease(rank, counter, until);
    send(event::Executed{key(rank, counter)});
  }
  KeeperActions end(std::uint32_t rank, std::uint64_t counter) {
    RankEnd end;
    end.kind = EndKind::kExited;
    KeeperActions all = send(event::Exited{key(rank, counter), end});
    const KeeperActions more = send(event::TreeEmpty{key(rank, counter)});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  KeeperActions crash() {
    RankEnd end;
    end.kind = EndKind::kSignaled;
    end.value = SIGSEGV;
    KeeperActions all = send(event::GuardedExited{end});
    return all;
  }
  KeeperActions leave(std::int32_t code) {
    RankEnd end;
    end.kind = EndKind::kExited;
    end.value = code;
    return send(event::GuardedExited{end});
  }
  const KeeperCore& core() const { return core_; }
  Instant now() const { return now_; }

 private:
  KeeperCore core_;
  Instant now_ = at(0);
};

TEST(KeeperCore, ForksEachRankOnceHoweverOftenItIsToldTo) {
  Keeper keeper;
  EXPECT_EQ(all_of<action::ForkRank>(keeper.start(3, 1)).size(), 3U);
  EXPECT_TRUE(all_of<action::ForkRank>(keeper.start(3, 1)).empty());
}

TEST(KeeperCore, IgnoresAGenerationThatIsNotNewer) {
  Keeper keeper;
  keeper.start(1, 2);
  keeper.end(0, 2);
  EXPECT_TRUE(all_of<action::ForkRank>(keeper.start(1, 1)).empty());
  EXPECT_TRUE(all_of<action::ForkRank>(keeper.start(1, 2)).empty());
  EXPECT_EQ(all_of<action::ForkRank>(keeper.start(1, 3)).size(), 1U);
}

TEST(KeeperCore, NeverStartsAGenerationThatWasStoppedBeforeItCame) {
  Keeper keeper;
  keeper.send(Stop{{rank_id(0)}, generation(4), SIGTERM, Duration::seconds(1)});
  EXPECT_TRUE(all_of<action::ForkRank>(keeper.start(1, 4)).empty());
  EXPECT_EQ(all_of<action::ForkRank>(keeper.start(1, 5)).size(), 1U);
}

Stop stop_of(std::uint32_t rank, Generation generation) {
  return {{rank_id(rank)}, generation, SIGTERM, Duration::seconds(1)};
}

TEST(KeeperCore, ReportsAtOnceTheEndOfWhatWasStoppedBeforeItCame) {
  Keeper keeper;
  const KeeperActions actions = keeper.send(stop_of(0, generation(4)));
  const auto reports = all_of<action::Report>(actions);
  ASSERT_EQ(reports.size(), 1U);
  const RankReport& report = reports[0].report;
  EXPECT_EQ(report.rank, rank_id(0));
  EXPECT_EQ(report.generation, generation(4));
  EXPECT_EQ(report.phase, RankPhase::kEnded);
  EXPECT_EQ(report.pid, 0);
  EXPECT_EQ(report.end.kind, EndKind::kNotExecuted);
  EXPECT_EQ(report.end.value, ECANCELED);
  EXPECT_EQ(report.end.detail, "stopped before it was started");
  EXPECT_TRUE(report.end.after_our_signal);
  EXPECT_TRUE(keeper.send(stop_of(0, generation(4))).empty()) << "a repeated order changes nothing";
  EXPECT_TRUE(keeper.start(1, 4).empty()) << "I4: its late START is ignored";
}

TEST(KeeperCore, KeepsTheEndOfWhatWasStoppedBeforeItCameUntilItIsForgotten) {
  Keeper keeper;
  keeper.send(stop_of(0, generation(4)));
  const auto hello = all_of<action::SayHello>(keeper.crash());
  ASSERT_EQ(hello.size(), 1U);
  ASSERT_EQ(hello[0].hello.ranks.size(), 1U);
  EXPECT_EQ(hello[0].hello.ranks[0].end.value, ECANCELED);
  keeper.send(KeeperForget{{rank_id(0)}, {generation(4)}});
  EXPECT_TRUE(keeper.core().slots().empty());
  EXPECT_TRUE(keeper.send(stop_of(0, generation(4))).empty());
  EXPECT_EQ(all_of<action::ForkRank>(keeper.start(1, 5)).size(), 1U);
}

TEST(KeeperCore, KeepsOneSuchEndPerRank) {
  Keeper keeper;
  for (std::uint64_t counter = 1; counter <= 100; ++counter) keeper.send(stop_of(0, generation(counter)));
  ASSERT_EQ(keeper.core().slots().size(), 1U);
  EXPECT_TRUE(keeper.core().slots().contains(key(0, 100)));
  EXPECT_TRUE(keeper.start(1, 99).empty());
}

TEST(KeeperCore, TellsNoEndOfARankOfWhichSomethingRuns) {
  Keeper keeper;
  keeper.start(1, 1);
  keeper.run_rank(0, 1, 60'000);
  for (const action::Report& told : all_of<action::Report>(keeper.send(stop_of(0, generation(2))))) {
    EXPECT_EQ(told.report.generation, generation(1));
    EXPECT_EQ(told.report.phase, RankPhase::kStopping);
  }
}

TEST(KeeperCore, TellsNoEndOfAGenerationThatIsNone) {
  Keeper keeper;
  EXPECT_TRUE(keeper.send(stop_of(0, Generation{Term(1), 0})).empty());
  EXPECT_TRUE(keeper.send(stop_of(0, Generation{Term(0), 7})).empty());
  EXPECT_TRUE(keeper.core().slots().empty());
}

TEST(KeeperCore, TellsNoEndOfALaunchThatAGuardNeverHeardOf) {
  Keeper keeper(KeeperKind::kGuard);
  EXPECT_TRUE(keeper.send(stop_of(0, generation(4))).empty());
}

TEST(KeeperCore, RefusesARankWhoseEarlierGenerationIsNotGone) {
  Keeper keeper;
  keeper.start(1, 1);
  const KeeperActions actions = keeper.start(1, 2);
  EXPECT_TRUE(all_of<action::ForkRank>(actions).empty());
  EXPECT_EQ(all_of<action::Refused>(actions).size(), 1U);
  keeper.end(0, 1);
  EXPECT_EQ(all_of<action::ForkRank>(keeper.start(1, 2)).size(), 1U);
}

TEST(KeeperCore, StopsWhatRunsAtTheGenerationOrBelow) {
  Keeper keeper;
  keeper.start(2, 3);
  keeper.run_rank(0, 3, 6'000);
  keeper.run_rank(1, 3, 6'000);
  EXPECT_TRUE(all_of<action::SignalGroup>(keeper.send(Stop{{rank_id(0)}, generation(2), SIGTERM, Duration::seconds(1)}))
                  .empty());
  const auto signals =
      all_of<action::SignalGroup>(keeper.send(Stop{{rank_id(0)}, generation(7), SIGTERM, Duration::seconds(1)}));
  ASSERT_EQ(signals.size(), 2U);
  EXPECT_EQ(signals[0].number, SIGCONT);
  EXPECT_EQ(signals[1].number, SIGTERM);
  EXPECT_EQ(signals[1].key, key(0, 3));
}

TEST(KeeperCore, GivesEveryChildOfAStopItsWholeGrace) {
  Keeper keeper;
  keeper.start(3, 1);
  for (std::uint32_t rank = 0; rank < 3; ++rank) keeper.run_rank(rank, 1, 60'000);
  keeper.send(Stop{{rank_id(0), rank_id(1), rank_id(2)}, generation(1), SIGTERM, Duration::seconds(5)});
  keeper.end(0, 1);  // quick: the others keep their time
  EXPECT_TRUE(all_of<action::KillTree>(keeper.run_to(4'999)).empty());
  keeper.end(1, 1);  // slow
  const auto kills = all_of<action::KillTree>(keeper.run_to(5'000));
  ASSERT_EQ(kills.size(), 1U);
  EXPECT_EQ(kills[0].key, key(2, 1));  // deaf
}

TEST(KeeperCore, ChecksItsLeasesBeforeItHandlesAnything) {
  Keeper keeper;
  keeper.start(1, 1);
  keeper.run_rank(0, 1, 6'000);
  keeper.stall_to(30'000);  // frozen, and thawed by an order to signal the rank
  const KeeperActions actions = keeper.send(Signal{{rank_id(0)}, generation(1), SIGUSR1});
  EXPECT_EQ(all_of<action::FreezeTree>(actions).size(), 1U);
  EXPECT_TRUE(all_of<action::SignalGroup>(actions).empty());
}

TEST(KeeperCore, FreezesAtTheEndOfALeaseAndThawsUnderANewOne) {
  Keeper keeper;
  keeper.start(1, 1);
  keeper.run_rank(0, 1, 6'000);
  EXPECT_TRUE(all_of<action::FreezeTree>(keeper.run_to(5'999)).empty());
  EXPECT_EQ(all_of<action::FreezeTree>(keeper.run_to(6'000)).size(), 1U);
  EXPECT_EQ(all_of<action::ThawTree>(keeper.lease(0, 1, 12'000)).size(), 1U);
}

TEST(KeeperCore, OpensNoGateForALeaseOfAnotherGeneration) {
  Keeper keeper;
  keeper.start(1, 2);
  EXPECT_TRUE(all_of<action::OpenGate>(keeper.lease(0, 1, 6'000)).empty());
  EXPECT_TRUE(all_of<action::OpenGate>(keeper.lease(0, 3, 6'000)).empty());
  EXPECT_EQ(all_of<action::OpenGate>(keeper.lease(0, 2, 6'000)).size(), 1U);
}

TEST(KeeperCore, ForgetsOnlyWhatHasEnded) {
  Keeper keeper;
  keeper.start(1, 1);
  const KeeperForget order{{rank_id(0)}, {generation(1)}};
  EXPECT_TRUE(all_of<action::Drop>(keeper.send(order)).empty());
  keeper.end(0, 1);
  EXPECT_EQ(all_of<action::Drop>(keeper.send(order)).size(), 1U);
  EXPECT_TRUE(keeper.core().slots().empty());
}

TEST(KeeperCore, KeepsAFewEndedGenerationsThatNobodyForgets) {
  Keeper keeper;
  for (std::uint64_t counter = 1; counter <= 10; ++counter) {
    keeper.start(1, counter);
    keeper.end(0, counter);
  }
  EXPECT_EQ(keeper.core().slots().size(), 4U);
  EXPECT_EQ(keeper.core().slots().begin()->first, key(0, 7));
}

TEST(KeeperCore, HoldsPortsUntilTheRanksOfTheirGenerationHaveEnded) {
  Keeper keeper;
  const Reserve order{MeshId(0), GangId(0), generation(1), 2};
  EXPECT_EQ(all_of<action::HoldReservation>(keeper.send(order)).size(), 1U);
  EXPECT_EQ(all_of<action::HoldReservation>(keeper.send(order)).size(), 1U) << "asked again, it answers again";
  keeper.start(2, 1);
  EXPECT_TRUE(all_of<action::ReleaseReservation>(keeper.end(0, 1)).empty());
  EXPECT_EQ(all_of<action::ReleaseReservation>(keeper.end(1, 1)).size(), 1U);
  EXPECT_EQ(all_of<action::RefuseReservation>(keeper.send(order)).size(), 1U) << "that generation is over";
}

TEST(KeeperCore, ReleasesPortsWhoseRanksNeverCameWhenALaterGenerationReserves) {
  Keeper keeper;
  keeper.send(Reserve{MeshId(0), GangId(0), generation(1), 1});
  const auto released =
      all_of<action::ReleaseReservation>(keeper.send(Reserve{MeshId(0), GangId(0), generation(2), 1}));
  ASSERT_EQ(released.size(), 1U);
  EXPECT_EQ(released[0].generation, generation(1));
}

TEST(KeeperCore, KeepsTheOrderOfExitsThatOneTurnFinds) {
  Keeper keeper;
  keeper.start(2, 1);
  keeper.run_rank(0, 1, 5'000);
  keeper.run_rank(1, 1, 5'000);
  keeper.end(1, 1);
  keeper.end(0, 1);
  const auto& slots = keeper.core().slots();
  EXPECT_LT(slots.at(key(1, 1)).report().ended_at, slots.at(key(0, 1)).report().ended_at);
}

TEST(KeeperCore, KillsADeafGuardedProcessAfterTwoSeconds) {
  Keeper keeper;
  keeper.run_to(1'000);
  EXPECT_TRUE(all_of<action::KillGuarded>(keeper.run_to(2'900, true)).empty());
  EXPECT_EQ(all_of<action::KillGuarded>(keeper.run_to(3'000, true)).size(), 1U);
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
    EXPECT_TRUE(all_of<action::KillTree>(keeper.crash()).empty());
    keeper.run_to(keeper.now().since_boot().count_milliseconds() + 10'000);
  }
  EXPECT_EQ(all_of<action::KillTree>(keeper.crash()).size(), 1U);
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

TEST(KeeperCore, PassesATermOnToTheGuardedProcessOfAGuard) {
  Keeper keeper(KeeperKind::kGuard);
  const KeeperActions actions = keeper.send(event::Terminated{SIGTERM});
  ASSERT_EQ(all_of<action::SignalGuarded>(actions).size(), 1U);
  EXPECT_FALSE(keeper.core().ending());
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
  EXPECT_EQ(all_of<action::SignalGroup>(actions).size(), 2U);
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
  EXPECT_EQ(all_of<action::KillTree>(keeper.send(event::Terminated{SIGTERM})).size(), 1U);
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
}  // namespace monarch
