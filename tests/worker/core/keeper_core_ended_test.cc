// When a keeper tells its daemon that nothing is kept any more.

#include <gtest/gtest.h>

#include <algorithm>

#include "worker/core/keeper_core.h"

namespace monarch {
namespace {

namespace event = keeper_event;
namespace action = keeper_action;

constexpr Instant kNow = Instant::since_boot(Duration::seconds(1));
const Incarnation kKey{{MeshId(0), Rank(0)}, {Term(1), 1}};

KeeperCore started(KeeperKind kind = KeeperKind::kWorker) {
  KeeperCore core({.kind = kind, .guarded = {}});
  (void)core.step(event::Tick{}, kNow);
  (void)core.step(event::GuardedForked{10}, kNow);
  (void)core.step(event::GuardedSpoke{}, kNow);
  return core;
}

std::size_t told(const KeeperActions& actions) {
  return static_cast<std::size_t>(std::count_if(actions.begin(), actions.end(), [](const KeeperAction& one) {
    return std::holds_alternative<action::TellEnded>(one);
  }));
}

TEST(KeeperEnded, IsToldOnceAndAtOnceWhereNothingIsKept) {
  KeeperCore core = started();
  EXPECT_EQ(told(core.step(event::Tick{}, kNow)), 0U);
  EXPECT_EQ(told(core.step(KeeperShutdown{0}, kNow)), 1U);
  EXPECT_EQ(told(core.step(event::Tick{}, kNow)), 0U);
}

TEST(KeeperEnded, IsToldWhenTheLastRankHasEnded) {
  KeeperCore core = started();
  Start order;
  order.generation = kKey.generation;
  order.ranks.push_back({.rank = kKey.rank, .env = {}, .program = {}, .workdir = "", .ports = {}, .binding = {}});
  (void)core.step(order, kNow);
  (void)core.step(event::Forked{kKey, 100}, kNow);
  EXPECT_EQ(told(core.step(KeeperShutdown{0}, kNow)), 0U);
  RankEnd end;
  end.kind = EndKind::kSignaled;
  end.value = 9;
  EXPECT_EQ(told(core.step(event::Exited{kKey, end, {}}, kNow)), 0U) << "its tree may not be empty";
  EXPECT_EQ(told(core.step(event::TreeEmpty{kKey}, kNow)), 1U);
}

TEST(KeeperEnded, IsToldBeforeTermWhenTheKeeperItselfIsToldToEnd) {
  KeeperCore core = started();
  const KeeperActions actions = core.step(event::Terminated{15}, kNow);
  ASSERT_EQ(told(actions), 1U);
  const auto said = std::find_if(actions.begin(), actions.end(), [](const KeeperAction& one) {
    return std::holds_alternative<action::TellEnded>(one);
  });
  EXPECT_TRUE(std::any_of(said, actions.end(),
                          [](const KeeperAction& one) { return std::holds_alternative<action::SignalGuarded>(one); }));
}

TEST(KeeperEnded, IsNoWordOfAGuards) {
  KeeperCore core = started(KeeperKind::kGuard);
  EXPECT_EQ(told(core.step(KeeperShutdown{0}, kNow)), 0U);
}

}  // namespace
}  // namespace monarch
