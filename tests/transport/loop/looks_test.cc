#include "transport/loop/looks.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace monarch {
namespace {

constexpr Duration kQuick = Duration::microseconds(5);
constexpr Duration kLost = Duration::milliseconds(3);  // a processor to others

struct LooksOf : testing::Test {
  void look(int times, bool in_vain) {
    for (int i = 0; i < times; ++i) looks.looked(now, in_vain ? Looks::kAtMost : kQuick, in_vain);
  }
  Looks looks;
  Instant now = Instant::since_boot(Duration::seconds(100));
};

TEST_F(LooksOf, ALoopThatHasJustBegunDoNotPay) { EXPECT_FALSE(looks.pay(now)); }

TEST_F(LooksOf, ALoopPayFromHalfOfTheLastSixteenOn) {
  look(7, false);
  EXPECT_FALSE(looks.pay(now));
  look(1, false);
  EXPECT_TRUE(looks.pay(now));
  look(8, true);
  EXPECT_TRUE(looks.pay(now)) << "8 of 16";
  look(1, true);
  EXPECT_FALSE(looks.pay(now));
  for (int i = 0; i < 100; ++i) {
    look(1, true);
    look(1, false);
  }
  EXPECT_TRUE(looks.pay(now)) << "every other one";
}

TEST_F(LooksOf, ALoopCountSleepsThatWereNoLongerThanALookAndAWaking) {
  const Duration soon = Looks::kAtMost + Looks::kWaking;
  for (int i = 0; i < 8; ++i) looks.slept(soon);
  EXPECT_TRUE(looks.pay(now));
  for (int i = 0; i < 9; ++i) looks.slept(soon + Duration::nanoseconds(1));
  EXPECT_FALSE(looks.pay(now));
}

// What is wasted after the last message of many: few looks, and then none.
TEST_F(LooksOf, AnIdleLoopEndSoon) {
  look(1'000, false);
  int wasted = 0;
  for (; looks.pay(now); ++wasted) look(1, true);
  EXPECT_EQ(wasted, 9);
  for (int i = 0; i < 1'000; ++i) {
    looks.slept(Duration::milliseconds(200));
    EXPECT_FALSE(looks.pay(now));
  }
}

TEST_F(LooksOf, ALoopThatLosesItsProcessorRestTwiceAsLongEachTime) {
  Duration rest = Looks::kRest;
  for (int times = 0; times < 12; ++times) {
    look(16, false);
    ASSERT_TRUE(looks.pay(now));
    looks.looked(now, kLost, false);
    look(16, false);  // as sleeps may tell, or looks that had begun
    now = now + rest - Duration::nanoseconds(1);
    EXPECT_FALSE(looks.pay(now)) << times;
    now = now + Duration::nanoseconds(1);
    EXPECT_TRUE(looks.pay(now)) << times;
    rest = std::min(rest + rest, Looks::kLongestRest);
  }
  look(Looks::kUndisturbed, false);
  looks.looked(now, kLost, true);
  look(16, false);
  EXPECT_TRUE(looks.pay(now + Looks::kRest)) << "after many that were not disturbed";
}

}  // namespace
}  // namespace monarch
