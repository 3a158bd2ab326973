// A standby waits at its gate for the place of a rank, and becomes it: the same process, which acts under that name
// once it is leased.

#include <gtest/gtest.h>

#include "tests/worker/core/keeper_core_driver.h"

namespace monarch {
namespace {

using namespace keeper_core_test;

const RankId kWaiting{MeshId(2), Rank(0)};
const Incarnation kStandby{kWaiting, generation(1)};

struct Standing : Keeper {
  Standing() {
    Start order{.mesh = kWaiting.mesh, .mesh_name = "standby-m", .generation = generation(1), .program = {"true"}};
    order.ranks.push_back({.rank = kWaiting});
    order.standby = true;
    forked = send(order);
    send(KeeperLease{{{kWaiting, generation(1)}}, at(10'000)});
    send(event::Executed{kStandby});
  }

  KeeperActions take_place() {
    Start order{.mesh = MeshId(0), .mesh_name = "m", .generation = generation(7), .program = {"true"}};
    order.orphan_ttl = Duration::seconds(60);
    order.ranks.push_back({.rank = rank_id(0), .standby = Incarnation{kWaiting, generation(1)}});
    return send(order);
  }

  KeeperActions forked;
};

TEST(Standby, IsForkedAsOneThatWaits) {
  Standing keeper;
  ASSERT_EQ(all_of<action::ForkRank>(keeper.forked).size(), 1U);
  EXPECT_TRUE(all_of<action::ForkRank>(keeper.forked)[0].gang.standby);
  const auto told = all_of<action::Report>(keeper.send(event::AtGate{kStandby}));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told[0].report.at_gate);
  EXPECT_TRUE(all_of<action::Report>(keeper.send(event::AtGate{kStandby})).empty());
}

TEST(Standby, BecomesTheRankWhoseStartNamesIt) {
  Standing keeper;
  keeper.send(event::AtGate{kStandby});
  const KeeperActions actions = keeper.take_place();
  EXPECT_TRUE(all_of<action::ForkRank>(actions).empty());
  const auto taken = all_of<action::TakeOver>(actions);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].from, kStandby);
  EXPECT_EQ(taken[0].as.key, key(0, 7));
  const auto told = all_of<action::Report>(actions);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].report.process.rank, rank_id(0));
  EXPECT_EQ(told[0].report.pid, 100);
  EXPECT_EQ(told[0].report.phase, RankPhase::kGated);
  EXPECT_FALSE(keeper.core().incarnations().contains(kStandby));
}

// I1: the lease of the standby is none of the rank's.
TEST(Standby, IsToldOfItsPlaceAtTheFirstLeaseOfThat) {
  Standing keeper;
  keeper.send(event::AtGate{kStandby});
  EXPECT_TRUE(all_of<action::OpenGate>(keeper.take_place()).empty());
  EXPECT_TRUE(all_of<action::OpenGate>(keeper.send(KeeperLease{{{kWaiting, generation(1)}}, at(20'000)})).empty());
  const auto opened = all_of<action::OpenGate>(keeper.lease(0, 7, 20'000));
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].key, key(0, 7));
  keeper.send(event::Executed{key(0, 7)});
  EXPECT_EQ(keeper.core().incarnations().at(key(0, 7)).phase(), IncarnationPhase::kRunning);
}

TEST(Standby, IsTakenOnceHoweverOftenItIsSaid) {
  Standing keeper;
  keeper.send(event::AtGate{kStandby});
  keeper.take_place();
  EXPECT_TRUE(keeper.take_place().empty());
}

TEST(Standby, ThatIsNotAtItsGateIsLeftAndTheRankIsForked) {
  Standing keeper;
  const KeeperActions actions = keeper.take_place();
  EXPECT_TRUE(all_of<action::TakeOver>(actions).empty());
  ASSERT_EQ(all_of<action::ForkRank>(actions).size(), 1U);
  EXPECT_EQ(all_of<action::ForkRank>(actions)[0].key, key(0, 7));
  EXPECT_TRUE(keeper.core().incarnations().contains(kStandby));
}

TEST(Standby, ThatIsBeingStoppedIsNotTaken) {
  Standing keeper;
  keeper.send(event::AtGate{kStandby});
  keeper.send(Stop{.ranks = {kWaiting}, .generation = generation(1), .signal = 15, .grace = Duration::seconds(5)});
  EXPECT_TRUE(all_of<action::TakeOver>(keeper.take_place()).empty());
}

TEST(Standby, ThatEndsAsTheRankEndsAsThat) {
  Standing keeper;
  keeper.send(event::AtGate{kStandby});
  keeper.take_place();
  keeper.run_rank(0, 7, 20'000);
  const auto told = all_of<action::Report>(keeper.end(0, 7));
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().report.process.rank, rank_id(0));
  EXPECT_EQ(told.back().report.phase, RankPhase::kEnded);
}

}  // namespace
}  // namespace monarch
