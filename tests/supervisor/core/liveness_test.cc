#include "supervisor/core/liveness.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

constexpr HostId kHost(0);

class LivenessTest : public testing::Test {
 protected:
  // Turns every half heartbeat, as the driver does.
  std::vector<HostVerdict> pass(Duration time) {
    std::vector<HostVerdict> verdicts;
    for (const Instant until = now + time; now < until;) {
      now = now + Duration::milliseconds(500);
      for (const HostVerdict& verdict : liveness.turn(now)) verdicts.push_back(verdict);
    }
    return verdicts;
  }
  Beat beat() const { return {.seq = 1, .sent_at = now - Duration::seconds(50)}; }

  Liveness liveness{Supervision{}, 1};
  Instant now = Instant::since_boot(Duration::seconds(100));
};

TEST_F(LivenessTest, SuspectsAfterThreeSecondsAndDeclaresAfterFive) {
  liveness.expect(kHost, now);
  EXPECT_TRUE(pass(Duration::milliseconds(2500)).empty());
  const auto suspect = pass(Duration::seconds(1));
  ASSERT_EQ(suspect.size(), 1U);
  EXPECT_EQ(suspect[0].health, HostHealth::kSuspect);
  const auto silent = pass(Duration::seconds(2));
  ASSERT_EQ(silent.size(), 1U);
  EXPECT_EQ(silent[0].health, HostHealth::kSilent);
}

TEST_F(LivenessTest, HearsASuspectedHostAgain) {
  liveness.expect(kHost, now);
  pass(Duration::seconds(4));
  const auto back = liveness.heard(kHost, beat(), now);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->health, HostHealth::kFresh);
  EXPECT_TRUE(pass(Duration::seconds(2)).empty());
}

TEST_F(LivenessTest, AddsItsOwnStallToEveryDeadline) {
  liveness.expect(kHost, now);
  pass(Duration::seconds(1));
  now = now + Duration::seconds(30);  // we were stopped
  EXPECT_TRUE(liveness.turn(now).empty());
  EXPECT_TRUE(pass(Duration::milliseconds(1500)).empty());
}

TEST_F(LivenessTest, AddsAStallBeforeItsFirstTurn) {
  liveness.expect(kHost, now);
  now = now + Duration::seconds(30);
  EXPECT_TRUE(liveness.turn(now).empty());
}

TEST_F(LivenessTest, TakesTheBeatsOfAHungDaemonForSilence) {
  liveness.expect(kHost, now);
  Beat hung = beat();
  hung.loop_age = Duration::seconds(4);
  for (int i = 0; i < 12; ++i) {
    pass(Duration::milliseconds(500));
    EXPECT_FALSE(liveness.heard(kHost, hung, now).has_value());
  }
  EXPECT_EQ(liveness.health(kHost), HostHealth::kSilent);
}

TEST_F(LivenessTest, TakesTheLeastDelayedBeatForTheClocksOffset) {
  liveness.expect(kHost, now);
  liveness.heard(kHost, {.seq = 1, .sent_at = Instant::since_boot(Duration::seconds(10))}, now);
  now = now + Duration::seconds(1);
  // 200 ms late: says less about the offset than the one before.
  liveness.heard(kHost, {.seq = 2, .sent_at = Instant::since_boot(Duration::milliseconds(10'800))}, now);
  EXPECT_EQ(liveness.to_ours(kHost, Instant::since_boot(Duration::seconds(10))),
            Instant::since_boot(Duration::seconds(100)));
}

TEST_F(LivenessTest, EstimatesNothingForAHostThatSharesItsClock) {
  liveness.expect(kHost, now);
  liveness.same_clock(kHost);
  liveness.heard(kHost, {.seq = 1, .sent_at = now - Duration::milliseconds(40)}, now);  // late: the machine is busy
  liveness.round_trip(kHost, Duration::milliseconds(80));
  EXPECT_EQ(liveness.to_ours(kHost, now), now);
  EXPECT_EQ(liveness.uncertainty(kHost), Duration::zero());
}

}  // namespace
}  // namespace monarch
