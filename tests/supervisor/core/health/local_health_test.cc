#include "supervisor/core/health/local_health.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

constexpr Duration kLost = Duration::seconds(5);

class LocalHealthTest : public testing::Test {
 protected:
  void pass(Duration time) {
    for (const Instant until = now + time; now < until;) {
      now = now + Duration::milliseconds(500);
      health.turn(now);
    }
  }

  LocalHealth health{Duration::seconds(1)};
  Instant now = Instant::since_boot(Duration::seconds(100));
};

TEST_F(LocalHealthTest, StretchesNothingWhileItIsWell) {
  health.ran_late(Duration::milliseconds(250), now);
  health.wrote(Duration::seconds(1), now);
  EXPECT_EQ(health.score(), 0U);
  EXPECT_EQ(health.stretched(kLost), kLost);
}

TEST_F(LocalHealthTest, CountsEachSignOnceAHeartbeat) {
  for (int i = 0; i < 5; ++i) {
    health.ran_late(Duration::milliseconds(300), now);
    health.wrote(Duration::seconds(2), now);
    health.stood_still(now);
  }
  EXPECT_EQ(health.score(), 3U);
  EXPECT_EQ(health.stretched(kLost), Duration::seconds(20));
}

TEST_F(LocalHealthTest, GrowsToEightAndGivesNobodyMoreThanHalfAMinute) {
  for (int i = 0; i < 20; ++i) {
    health.ran_late(Duration::seconds(1), now);
    now = now + Duration::seconds(1);
  }
  EXPECT_EQ(health.score(), LocalHealth::kMostScore);
  EXPECT_EQ(health.stretched(kLost), LocalHealth::kLongest);
  EXPECT_EQ(health.stretched(Duration::seconds(40)), Duration::seconds(40));
}

TEST_F(LocalHealthTest, IsWellAgainAHeartbeatForEachSign) {
  health.ran_late(Duration::seconds(1), now);
  health.stood_still(now);
  pass(Duration::milliseconds(500));
  EXPECT_EQ(health.score(), 2U);
  pass(Duration::milliseconds(500));
  EXPECT_EQ(health.score(), 1U);
  pass(Duration::seconds(1));
  EXPECT_EQ(health.score(), 0U);
}

TEST_F(LocalHealthTest, TakesItForItsOwnTroubleToDoubtMany) {
  health.doubts(1, 2);  // one host is that host's trouble
  EXPECT_EQ(health.score(), 0U);
  health.doubts(2, 20);
  EXPECT_EQ(health.score(), 0U);
  health.doubts(3, 20);
  EXPECT_EQ(health.score(), 1U);
  health.doubts(0, 20);
  EXPECT_EQ(health.score(), 0U);
}

}  // namespace
}  // namespace monarch
