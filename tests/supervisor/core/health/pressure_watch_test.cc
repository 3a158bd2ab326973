#include "supervisor/core/health/pressure_watch.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

constexpr HostId kHost{3};
constexpr HostPressure kShort{.cpu = 10, .memory = 63, .io = 0};
constexpr HostPressure kWell{.cpu = 70, .memory = 3, .io = 20};

Instant at(std::int64_t seconds) { return Instant{} + Duration::seconds(1'000 + seconds); }

TEST(Pressure, NamesWhatAHostIsShortOf) {
  EXPECT_EQ(shortage_of(kWell), "");
  EXPECT_EQ(shortage_of(kShort), "short of memory (63 % of the time)");
  EXPECT_EQ(shortage_of({.cpu = 99, .memory = 0, .io = 80}),
            "short of disk bandwidth (80 % of the time), short of processors (99 % of the time)");
}

TEST(Pressure, IsToldOnceAndAgainOnlyAfterACalm) {
  PressureWatch watch;
  EXPECT_FALSE(watch.note(kHost, "h4", kWell, at(0)));
  const auto told = watch.note(kHost, "h4", kShort, at(1));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->kind, EventKind::kHostPressure);
  EXPECT_EQ(told->host, "h4");
  EXPECT_EQ(told->message, "h4: short of memory (63 % of the time); it is slow, and nothing is stopped for that");
  EXPECT_FALSE(watch.note(kHost, "h4", kShort, at(2)));
  EXPECT_FALSE(watch.note(kHost, "h4", kWell, at(3)));
  EXPECT_FALSE(watch.note(kHost, "h4", kShort, at(100))) << "it comes and goes";
  EXPECT_FALSE(watch.note(kHost, "h4", kWell, at(219)));
  EXPECT_FALSE(watch.note(kHost, "h4", kWell, at(221))) << "two minutes of calm";
  EXPECT_TRUE(watch.note(kHost, "h4", kShort, at(222)));
}

TEST(Pressure, OfAnotherThingIsToldByItself) {
  PressureWatch watch;
  EXPECT_TRUE(watch.note(kHost, "h4", kShort, at(1)));
  const auto told = watch.note(kHost, "h4", {.cpu = 90, .memory = 63, .io = 0}, at(2));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->message, "h4: short of processors (90 % of the time); it is slow, and nothing is stopped for that");
}

TEST(Pressure, OfOneHostIsNotThatOfAnother) {
  PressureWatch watch;
  EXPECT_TRUE(watch.note(kHost, "h4", kShort, at(1)));
  EXPECT_TRUE(watch.note(HostId(4), "h5", kShort, at(1)));
}

}  // namespace
}  // namespace monarch
