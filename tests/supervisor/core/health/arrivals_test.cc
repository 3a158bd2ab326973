#include "supervisor/core/health/arrivals.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

Arrivals heard_every(Duration pause, int times) {
  Arrivals arrivals(Duration::seconds(1));
  for (int i = 0; i < times; ++i) arrivals.add(pause);
  return arrivals;
}

TEST(Arrivals, SaysNothingBeforeTwentyBeats) {
  EXPECT_FALSE(heard_every(Duration::seconds(1), 19).unlikely_after().has_value());
  EXPECT_TRUE(heard_every(Duration::seconds(1), 20).unlikely_after().has_value());
}

TEST(Arrivals, AllowsARegularHostOneLostBeat) {
  EXPECT_EQ(*heard_every(Duration::seconds(1), 100).unlikely_after(), Duration::seconds(2));
}

TEST(Arrivals, AllowsAnIrregularHostMore) {
  Arrivals arrivals(Duration::seconds(1));
  for (int i = 0; i < 50; ++i) {
    arrivals.add(Duration::milliseconds(700));
    arrivals.add(Duration::milliseconds(1'900));
  }
  // 1.3 s on average, 0.6 s to either side: 1.3 + 5.612 × 0.6
  EXPECT_NEAR(arrivals.unlikely_after()->count_seconds(), 4.667, 0.01);
}

TEST(Arrivals, LeavesOutBeatsThatWereSentBeforeTheirTime) {
  Arrivals arrivals(Duration::seconds(1));
  for (int i = 0; i < 100; ++i) {
    arrivals.add(Duration::milliseconds(1));
    if (i % 4 == 0) arrivals.add(Duration::milliseconds(1'000));
  }
  EXPECT_EQ(*arrivals.unlikely_after(), Duration::seconds(2));
}

TEST(Arrivals, ForgetsWhatIsAHundredBeatsAgo) {
  Arrivals arrivals = heard_every(Duration::seconds(3), 40);
  for (int i = 0; i < 100; ++i) arrivals.add(Duration::seconds(1));
  EXPECT_EQ(*arrivals.unlikely_after(), Duration::seconds(2));
}

}  // namespace
}  // namespace monarch
