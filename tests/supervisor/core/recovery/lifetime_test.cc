#include "supervisor/core/recovery/lifetime.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

using Says = IdleWatch::Says;

Instant at(int seconds) { return Instant::since_boot(Duration::seconds(seconds)); }

TEST(IdleWatch, WarnsATenthBeforeItStops) {
  IdleWatch watch(Duration::seconds(100));
  EXPECT_EQ(watch.next_deadline(), Instant::never());  // nothing is up yet
  watch.begin(at(0));
  EXPECT_EQ(watch.next_deadline(), at(90));
  EXPECT_EQ(watch.turn(at(89)), Says::kNothing);
  EXPECT_EQ(watch.turn(at(90)), Says::kWarn);
  EXPECT_EQ(watch.turn(at(91)), Says::kNothing);
  EXPECT_EQ(watch.next_deadline(), at(100));
  EXPECT_EQ(watch.turn(at(100)), Says::kStop);
  EXPECT_EQ(watch.turn(at(200)), Says::kNothing);
  EXPECT_EQ(watch.next_deadline(), Instant::never());
}

TEST(IdleWatch, StartsAgainWithEveryUse) {
  IdleWatch watch(Duration::seconds(100));
  watch.begin(at(0));
  EXPECT_EQ(watch.turn(at(95)), Says::kWarn);
  watch.used(at(96));
  EXPECT_EQ(watch.turn(at(120)), Says::kNothing);
  EXPECT_EQ(watch.turn(at(186)), Says::kWarn);
}

TEST(IdleWatch, WaitsWhileSomebodyLooksOn) {
  IdleWatch watch(Duration::seconds(100));
  watch.begin(at(0));
  watch.viewers(1, at(50));
  EXPECT_EQ(watch.next_deadline(), Instant::never());
  EXPECT_EQ(watch.turn(at(1000)), Says::kNothing);
  watch.viewers(0, at(1000));
  EXPECT_EQ(watch.turn(at(1089)), Says::kNothing);
  EXPECT_EQ(watch.turn(at(1100)), Says::kStop);
}

TEST(IdleWatch, SaysNothingWithoutALimit) {
  IdleWatch watch(Duration::forever());
  watch.begin(at(0));
  EXPECT_EQ(watch.turn(at(1'000'000)), Says::kNothing);
  EXPECT_EQ(watch.next_deadline(), Instant::never());
}

TEST(Lifetime, IsAnnouncedAtMostFiveMinutesBefore) {
  EXPECT_EQ(warning_before(Duration::seconds(600)), Duration::seconds(60));
  EXPECT_EQ(warning_before(Duration::seconds(36'000)), Duration::seconds(300));
}

}  // namespace
}  // namespace monarch
