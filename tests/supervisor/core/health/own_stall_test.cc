#include "supervisor/core/health/own_stall.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

Instant at(std::int64_t milliseconds) { return Instant::since_boot(Duration::milliseconds(milliseconds)); }

TEST(OwnStall, IsTheTimeInWhichNobodyAsked) {
  OwnStall stall;
  EXPECT_EQ(stall.turn(at(100'000)), std::nullopt) << "nothing is known of the time before";
  EXPECT_EQ(stall.turn(at(100'500)), std::nullopt);
  EXPECT_EQ(stall.turn(at(102'000)), std::nullopt) << "nobody is late by a beat";
  EXPECT_EQ(stall.turn(at(103'501)), Duration::milliseconds(1'501))
      << "a busy machine counts as well as one that slept";
  EXPECT_EQ(stall.turn(at(180'501)), Duration::milliseconds(77'000));
  EXPECT_EQ(stall.turn(at(180'501)), std::nullopt) << "it is told once";
}

}  // namespace
}  // namespace monarch
