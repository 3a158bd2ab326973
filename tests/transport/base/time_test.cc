#include "transport/base/time.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

TEST(Duration, ReadsAsAPersonWouldWriteIt) {
  EXPECT_EQ(to_text(Duration::zero()), "0s");
  EXPECT_EQ(to_text(Duration::microseconds(40)), "40us");
  EXPECT_EQ(to_text(Duration::milliseconds(250)), "250ms");
  EXPECT_EQ(to_text(Duration::milliseconds(1500)), "1.5s");
  EXPECT_EQ(to_text(Duration::seconds(2)), "2s");
  EXPECT_EQ(to_text(Duration::seconds(90)), "1m 30s");
  EXPECT_EQ(to_text(Duration::seconds(120)), "2m");
  EXPECT_EQ(to_text(Duration::seconds(3840)), "1h 4m");
  EXPECT_EQ(to_text(Duration::forever()), "none");
  EXPECT_EQ(to_text(Duration::zero() - Duration::seconds(1)), "-1s");
}

TEST(Instant, NeverStaysNever) {
  EXPECT_EQ(Instant::never() + Duration::seconds(1), Instant::never());
  EXPECT_EQ(Instant() + Duration::forever(), Instant::never());
}

TEST(WallTime, IsWrittenInUtcWithMilliseconds) {
  EXPECT_EQ(to_text(WallTime{1'700'000'000'120'000'000}), "2023-11-14T22:13:20.120Z");
}

}  // namespace
}  // namespace monarch
