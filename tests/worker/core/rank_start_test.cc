#include <gtest/gtest.h>

#include <algorithm>

#include "worker/core/keeper_core.h"

namespace monarch {
namespace {

namespace event = keeper_event;
namespace action = keeper_action;

const RankId kRank{MeshId(0), Rank(0)};
const Generation kGeneration{Term(1), 1};
const Incarnation kKey{kRank, kGeneration};

template <class Action>
std::vector<Action> all_of(const KeeperActions& actions) {
  std::vector<Action> found;
  for (const KeeperAction& one : actions) {
    if (const auto* match = std::get_if<Action>(&one)) found.push_back(*match);
  }
  return found;
}

// What a START says of one rank, and what comes between its gate and its program.
class RankStartOf : public testing::Test {
 protected:
  KeeperActions at(std::int64_t milliseconds, const KeeperEvent& happened) {
    return core_.step(happened, Instant::since_boot(Duration::milliseconds(milliseconds)));
  }
  KeeperActions lease(std::int64_t now, std::int64_t until) {
    return at(now, KeeperLease{{{kRank, kGeneration}}, Instant::since_boot(Duration::milliseconds(until))});
  }
  static Start order() {
    Start order;
    order.gang = GangId(3);
    order.generation = kGeneration;
    order.program = {"python3", "train.py"};
    order.workdir = "/data";
    order.setup = "module load cuda";
    order.ranks = {{.rank = kRank}};
    return order;
  }
  void start_setup() {
    at(0, order());
    at(0, event::Forked{kKey, 42});
    ASSERT_EQ(all_of<action::OpenGate>(lease(0, 6'000)).size(), 1U);
  }
  RankReport report() { return core_.incarnations().at(kKey).report(); }

  KeeperCore core_{KeeperOptions{}};
};

TEST_F(RankStartOf, TakesWhatTheStartSaysOfAllAndOfOne) {
  Start both = order();
  both.ranks.push_back({.rank = {MeshId(0), Rank(1)},
                        .env = {},
                        .program = {"true"},
                        .workdir = "/own",
                        .ports = {8080},
                        .binding = {BindKind::kCore, 4, 2, {}}});
  const auto forks = all_of<action::ForkRank>(at(0, both));
  ASSERT_EQ(forks.size(), 2U);
  EXPECT_EQ(forks[0].own.program, both.program);
  EXPECT_EQ(forks[0].own.workdir, "/data");
  EXPECT_EQ(forks[0].gang.gang, GangId(3));
  EXPECT_EQ(forks[0].gang.setup, "module load cuda");
  EXPECT_EQ(forks[0].own.binding, RankBinding{});
  EXPECT_EQ(forks[1].own.program, std::vector<std::string>{"true"});
  EXPECT_EQ(forks[1].own.workdir, "/own");
  EXPECT_EQ(forks[1].gang.setup, "module load cuda");
  EXPECT_EQ(forks[1].own.ports, std::vector<std::uint16_t>{8080});
  EXPECT_EQ(forks[1].own.binding, (RankBinding{BindKind::kCore, 4, 2, {}}));
}

TEST_F(RankStartOf, IsGatedWhileItsMeshIsSetUp) {
  start_setup();
  EXPECT_EQ(report().phase, RankPhase::kGated);
  at(1'000, event::Executed{kKey});
  EXPECT_EQ(report().phase, RankPhase::kRunning);
}

TEST_F(RankStartOf, FrozenInItsSetupComesBackToItsSetup) {
  start_setup();
  EXPECT_EQ(all_of<action::FreezeTree>(at(6'000, event::Tick{})).size(), 1U);
  EXPECT_TRUE(report().held);
  EXPECT_EQ(report().phase, RankPhase::kGated);
  EXPECT_EQ(all_of<action::ThawTree>(lease(7'000, 13'000)).size(), 1U);
  EXPECT_FALSE(report().held);
  EXPECT_EQ(report().phase, RankPhase::kGated);
  at(8'000, event::ExecFailed{kKey, 0, "`setup`", 3});
  at(8'000, event::Exited{kKey, {.kind = EndKind::kExited, .value = 127, .detail = {}}, {}});
  at(8'000, event::TreeEmpty{kKey});
  EXPECT_EQ(report().end.kind, EndKind::kSetupFailed);
  EXPECT_EQ(report().end.value, 3);
}

TEST_F(RankStartOf, ExecutedJustBeforeItWasFrozenComesBackRunning) {
  start_setup();
  at(6'000, event::Tick{});
  at(6'001, event::Executed{kKey});
  EXPECT_EQ(report().phase, RankPhase::kRunning);
  EXPECT_TRUE(report().held);
  lease(7'000, 13'000);
  EXPECT_EQ(report().phase, RankPhase::kRunning);
}

TEST_F(RankStartOf, EndsWithTheCodeOfItsSetup) {
  start_setup();
  at(1'000, event::ExecFailed{kKey, 0, "`setup`", 42});
  at(1'000, event::Exited{kKey, {.kind = EndKind::kExited, .value = 127, .detail = {}}, {}});
  at(1'000, event::TreeEmpty{kKey});
  EXPECT_EQ(report().phase, RankPhase::kEnded);
  EXPECT_EQ(report().end.kind, EndKind::kSetupFailed);
  EXPECT_EQ(report().end.value, 42);
  EXPECT_EQ(report().end.detail, "`setup`");
  EXPECT_FALSE(report().end.after_our_signal);
}

TEST_F(RankStartOf, GetsItsGraceWhenItIsStoppedInItsSetup) {
  start_setup();
  Stop stop{{kRank}, kGeneration, 15, Duration::seconds(30)};
  EXPECT_TRUE(all_of<action::KillTree>(at(1'000, stop)).empty());
  EXPECT_EQ(report().phase, RankPhase::kStopping);
  at(2'000, event::Exited{kKey, {.kind = EndKind::kSignaled, .value = 15, .detail = {}}, {}});
  at(2'000, event::TreeEmpty{kKey});
  EXPECT_TRUE(report().end.after_our_signal);
}

TEST_F(RankStartOf, MayReserveGpusAloneAndNotTooMuch) {
  Reserve reserve{MeshId(0), GangId(0), kGeneration, 0, {}, {"GPU-a"}};
  const auto held = all_of<action::HoldReservation>(at(0, reserve));
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held[0].reserve.gpus, std::vector<std::string>{"GPU-a"});
  Reserve sparing{MeshId(0), GangId(1), kGeneration, 1};
  sparing.spared = std::vector<std::uint16_t>(1'025, 1);
  for (Reserve wrong : {sparing, Reserve{MeshId(0), GangId(1), kGeneration, 1'025, {}, {}},
                        Reserve{MeshId(0), GangId(1), kGeneration, 0xffffffff, {1, 2}, {}},
                        Reserve{MeshId(0), GangId(1), kGeneration, 1'000, std::vector<std::uint16_t>(25, 1), {}},
                        Reserve{MeshId(0), GangId(1), kGeneration, 0, {}, std::vector<std::string>(1'025, "GPU")}}) {
    const auto refused = all_of<action::RefuseReservation>(at(0, wrong));
    ASSERT_EQ(refused.size(), 1U);
    EXPECT_EQ(refused[0].why, "no more than 1024 ports and GPUs can be reserved at once");
  }
}

}  // namespace
}  // namespace monarch
