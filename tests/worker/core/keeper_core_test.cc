#include "worker/core/keeper_core.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

#include "tests/worker/core/keeper_core_driver.h"

namespace monarch::keeper_core_test {
namespace {

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
  EXPECT_EQ(report.process.rank, rank_id(0));
  EXPECT_EQ(report.process.generation, generation(4));
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
  keeper.send(KeeperForget{{{rank_id(0), generation(4)}}});
  EXPECT_TRUE(keeper.core().incarnations().empty());
  EXPECT_TRUE(keeper.send(stop_of(0, generation(4))).empty());
  EXPECT_EQ(all_of<action::ForkRank>(keeper.start(1, 5)).size(), 1U);
}

TEST(KeeperCore, KeepsOneSuchEndPerRank) {
  Keeper keeper;
  for (std::uint64_t counter = 1; counter <= 100; ++counter) keeper.send(stop_of(0, generation(counter)));
  ASSERT_EQ(keeper.core().incarnations().size(), 1U);
  EXPECT_TRUE(keeper.core().incarnations().contains(key(0, 100)));
  EXPECT_TRUE(keeper.start(1, 99).empty());
}

TEST(KeeperCore, TellsNoEndOfARankOfWhichSomethingRuns) {
  Keeper keeper;
  keeper.start(1, 1);
  keeper.run_rank(0, 1, 60'000);
  for (const action::Report& told : all_of<action::Report>(keeper.send(stop_of(0, generation(2))))) {
    EXPECT_EQ(told.report.process.generation, generation(1));
    EXPECT_EQ(told.report.phase, RankPhase::kStopping);
  }
}

TEST(KeeperCore, TellsNoEndOfAGenerationThatIsNone) {
  Keeper keeper;
  EXPECT_TRUE(keeper.send(stop_of(0, Generation{Term(1), 0})).empty());
  EXPECT_TRUE(keeper.send(stop_of(0, Generation{Term(0), 7})).empty());
  EXPECT_TRUE(keeper.core().incarnations().empty());
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

TEST(KeeperCore, StartsNothingByAStartThatIsReplayed) {
  Keeper keeper;
  keeper.start(1, 5);
  keeper.run_rank(0, 5, 60'000);
  EXPECT_TRUE(all_of<action::ForkRank>(keeper.start(1, 5)).empty()) << "while it runs";
  keeper.send(stop_of(0, generation(5)));
  EXPECT_TRUE(all_of<action::ForkRank>(keeper.start(1, 5)).empty()) << "while it is stopped";
  keeper.end(0, 5);
  EXPECT_TRUE(all_of<action::ForkRank>(keeper.start(1, 5)).empty()) << "after its end";
  keeper.send(KeeperForget{{{rank_id(0), generation(5)}}});
  EXPECT_TRUE(all_of<action::ForkRank>(keeper.start(1, 5)).empty()) << "after its end was forgotten";
  EXPECT_TRUE(all_of<action::ForkRank>(keeper.start(1, 4)).empty()) << "of an earlier generation";
  EXPECT_EQ(all_of<action::ForkRank>(keeper.start(1, 6)).size(), 1U);
}

TEST(KeeperCore, StopsWhatRunsAtTheGenerationOrBelow) {
  Keeper keeper;
  keeper.start(2, 3);
  keeper.run_rank(0, 3, 6'000);
  keeper.run_rank(1, 3, 6'000);
  EXPECT_TRUE(all_of<action::SignalRank>(keeper.send(Stop{{rank_id(0)}, generation(2), SIGTERM, Duration::seconds(1)}))
                  .empty());
  const auto signals =
      all_of<action::SignalRank>(keeper.send(Stop{{rank_id(0)}, generation(7), SIGTERM, Duration::seconds(1)}));
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
  EXPECT_TRUE(all_of<action::KillRank>(keeper.run_to(4'999)).empty());
  keeper.end(1, 1);  // slow
  const auto kills = all_of<action::KillRank>(keeper.run_to(5'000));
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
  EXPECT_TRUE(all_of<action::SignalRank>(actions).empty());
}

// A laptop slept, or Slurm has suspended the job: who would have renewed the lease slept, too.
TEST(KeeperCore, HoldsWhatItFindsWithoutALeaseAfterAStallOfItsOwnForAWholeOrphanTime) {
  Keeper keeper;
  keeper.start(1, 1);
  keeper.run_rank(0, 1, 6'000);
  keeper.run_to(1'000);
  keeper.stall_to(500'000);
  const KeeperActions woken = keeper.send(event::Tick{});
  EXPECT_EQ(all_of<action::FreezeTree>(woken).size(), 1U);
  EXPECT_TRUE(all_of<action::KillTree>(woken).empty()) << "nobody could be heard meanwhile";
  EXPECT_TRUE(all_of<action::KillTree>(keeper.run_to(557'000)).empty());
  EXPECT_EQ(all_of<action::ThawTree>(keeper.lease(0, 1, 563'000)).size(), 1U) << "it goes on in its generation";
  keeper.run_to(570'000);
  EXPECT_TRUE(all_of<action::KillTree>(keeper.run_to(616'900)).empty());
  EXPECT_EQ(all_of<action::KillTree>(keeper.run_to(617'000)).size(), 1U) << "a stall counts until it was heard again";
}

TEST(KeeperCore, KillsAnOrphanThatIsToStopAfterAStallOnceTheRestOfItsLeaseHasRun) {
  Keeper keeper;
  Start order;
  order.generation = generation(1);
  order.program = {"true"};
  order.orphan = OrphanPolicy::kStop;
  order.orphan_ttl = Duration::seconds(60);
  order.ranks.push_back({rank_id(0), {}});
  keeper.send(order);
  keeper.run_rank(0, 1, 6'000);
  keeper.run_to(2'000);
  keeper.stall_to(100'000);
  const KeeperActions woken = keeper.send(event::Tick{});
  EXPECT_EQ(all_of<action::FreezeTree>(woken).size(), 1U);
  EXPECT_TRUE(all_of<action::KillTree>(woken).empty());
  EXPECT_EQ(all_of<action::KillTree>(keeper.run_to(105'000)).size(), 1U);
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
  const KeeperForget order{{{rank_id(0), generation(1)}}};
  EXPECT_TRUE(all_of<action::Drop>(keeper.send(order)).empty());
  keeper.end(0, 1);
  EXPECT_EQ(all_of<action::Drop>(keeper.send(order)).size(), 1U);
  EXPECT_TRUE(keeper.core().incarnations().empty());
}

TEST(KeeperCore, KeepsAFewEndedGenerationsThatNobodyForgets) {
  Keeper keeper;
  for (std::uint64_t counter = 1; counter <= 10; ++counter) {
    keeper.start(1, counter);
    keeper.end(0, counter);
  }
  EXPECT_EQ(keeper.core().incarnations().size(), 4U);
  EXPECT_EQ(keeper.core().incarnations().begin()->first, key(0, 7));
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

TEST(KeeperCore, LeavesAReservationUnansweredWhileItEnds) {
  Keeper keeper;
  keeper.start(1, 1);
  keeper.send(event::Terminated{SIGTERM});
  const auto actions = keeper.send(Reserve{MeshId(0), GangId(0), generation(2), 2});
  EXPECT_TRUE(all_of<action::RefuseReservation>(actions).empty()) << "its end is told, and the host lacks nothing";
  EXPECT_TRUE(all_of<action::HoldReservation>(actions).empty());
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
  const auto& incarnations = keeper.core().incarnations();
  EXPECT_LT(incarnations.at(key(1, 1)).report().ended_at, incarnations.at(key(0, 1)).report().ended_at);
}

}  // namespace
}  // namespace monarch::keeper_core_test
