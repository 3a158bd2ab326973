// What a keeper tells of an incarnation that stands still.

#include <gtest/gtest.h>

#include <csignal>
#include <optional>

#include "worker/core/incarnation_state.h"

namespace monarch {
namespace {

const Incarnation kKey{RankId{MeshId(0), Rank(3)}, Generation{Term(1), 1}};

Instant at(std::int64_t seconds) { return Instant::since_boot(Duration::seconds(seconds)); }

class IncarnationStandstill : public testing::Test {
 protected:
  void SetUp() override {
    KeeperActions actions;
    incarnation.forked(42, at(0), actions);
    incarnation.lease(at(6), at(0), actions);
    incarnation.executed(actions);
  }
  // What is told of it; nothing where nothing is.
  std::optional<Standstill> stood(Standstill standstill) {
    KeeperActions actions;
    incarnation.stood(standstill, actions);
    if (actions.empty()) return std::nullopt;
    return std::get<keeper_action::Report>(actions.back()).report.standstill;
  }

  IncarnationState incarnation{{.key = kKey,
                                .mesh = MeshId(0),
                                .gang = GangId(0),
                                .orphan_ttl = Duration::seconds(60),
                                .stop_grace = Duration::seconds(30)},
                               at(0)};
};

TEST_F(IncarnationStandstill, IsToldOnceWhenItBeginsAndOnceWhenItEnds) {
  EXPECT_EQ(stood(Standstill::kStopped), Standstill::kStopped);
  EXPECT_EQ(stood(Standstill::kStopped), std::nullopt);
  EXPECT_EQ(incarnation.report().standstill, Standstill::kStopped);
  EXPECT_EQ(stood(Standstill::kTraced), Standstill::kTraced);
  EXPECT_EQ(stood(Standstill::kNone), Standstill::kNone);
}

TEST_F(IncarnationStandstill, IsNotToldOfOneThatWeHold) {
  KeeperActions actions;
  incarnation.enforce_lease(at(6), actions);
  ASSERT_EQ(incarnation.phase(), IncarnationPhase::kHeld);
  EXPECT_EQ(stood(Standstill::kStopped), std::nullopt);
  EXPECT_EQ(incarnation.report().standstill, Standstill::kNone);
  incarnation.lease(at(20), at(7), actions);
  ASSERT_EQ(incarnation.phase(), IncarnationPhase::kRunning);
  EXPECT_EQ(incarnation.report().standstill, Standstill::kNone);
  EXPECT_EQ(stood(Standstill::kStopped), Standstill::kStopped);  // somebody else holds it, too
}

TEST_F(IncarnationStandstill, IsHeldAgainWhereSomebodyLetsItGoOn) {
  KeeperActions actions;
  incarnation.enforce_lease(at(6), actions);
  actions.clear();
  incarnation.stood(Standstill::kStopped, actions);  // as we left it
  EXPECT_TRUE(actions.empty());
  incarnation.stood(Standstill::kNone, actions);
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(std::get<keeper_action::FreezeTree>(actions[0]).key, kKey);
  EXPECT_EQ(incarnation.phase(), IncarnationPhase::kHeld);
}

TEST_F(IncarnationStandstill, IsNotToldOfOneThatIsBeingKilled) {
  KeeperActions actions;
  incarnation.stop({SIGKILL, Duration::zero()}, at(1), actions);
  EXPECT_EQ(stood(Standstill::kFrozen), std::nullopt);
}

}  // namespace
}  // namespace monarch
