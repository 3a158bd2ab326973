#include "transport/tensor/cuda/copy_calls.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace monarch::tensor {
namespace {

constexpr std::uint64_t kAnyPitch = 0x7fff'ffff;

std::vector<CudaCopy> calls_of(const CudaCopy& copy, std::vector<std::uintptr_t> ends,
                               std::uint64_t max_pitch = kAnyPitch) {
  CopyCalls calls(copy, std::move(ends), max_pitch);
  std::vector<CudaCopy> all;
  for (CudaCopy one; calls.next(one);) all.push_back(one);
  return all;
}

char* at(std::uintptr_t address) { return reinterpret_cast<char*>(address); }

CudaCopy rows_of(std::uint64_t row, std::uint64_t rows, std::uint64_t host_pitch, std::uint64_t device_pitch) {
  return {.host = at(1'000),
          .device = at(1'000'000),
          .row = row,
          .rows = rows,
          .host_pitch = host_pitch,
          .device_pitch = device_pitch};
}

TEST(CopyCalls, TakeOneCallForWhatIsDense) {
  const auto calls = calls_of(rows_of(8, 100, 8, 8), {});
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].row, 800U);
  EXPECT_EQ(calls[0].rows, 1U);
}

TEST(CopyCalls, TakeOneCallForRowsThatTheDeviceTakes) {
  const auto calls = calls_of(rows_of(8, 100, 8, 32), {});
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].rows, 100U);
  EXPECT_EQ(calls[0].device_pitch, 32U);
}

TEST(CopyCalls, GoRowByRowWhereAPitchIsTooGreatOrTooSmall) {
  EXPECT_EQ(calls_of(rows_of(8, 5, 8, 33), {}, 32).size(), 5U);
  EXPECT_EQ(calls_of(rows_of(8, 5, 33, 8), {}, 32).size(), 5U);
  EXPECT_EQ(calls_of(rows_of(8, 5, 8, 0), {}).size(), 5U);  // the same row of the device's, again and again
  EXPECT_EQ(calls_of(rows_of(8, 1, 0, 1'000), {}, 32).size(), 1U);
}

TEST(CopyCalls, AreNoneOfNothing) {
  EXPECT_TRUE(calls_of(rows_of(0, 5, 8, 8), {}).empty());
  EXPECT_TRUE(calls_of(rows_of(8, 0, 8, 8), {}).empty());
}

TEST(CopyCalls, EndWhereAPieceEnds) {
  const auto calls = calls_of(rows_of(100, 1, 0, 0), {1'030, 1'060});
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[1].host, at(1'030));
  EXPECT_EQ(calls[1].device, at(1'000'030));
  EXPECT_EQ(calls[1].row, 30U);
  EXPECT_EQ(calls[2].row, 40U);
}

TEST(CopyCalls, OfRowsEndWhereAPieceEndsWithinARowAndBetweenTwo) {
  // Rows at 1000, 1020, 1040, 1060, 1080, of 10 bytes.
  const auto within = calls_of(rows_of(10, 5, 20, 10), {1'045});
  ASSERT_EQ(within.size(), 4U);  // two rows, two parts of one, two rows
  EXPECT_EQ(within[0].rows, 2U);
  EXPECT_EQ(within[1].row, 5U);
  EXPECT_EQ(within[2].host, at(1'045));
  EXPECT_EQ(within[2].device, at(1'000'025));
  EXPECT_EQ(within[3].rows, 2U);
  const auto between = calls_of(rows_of(10, 5, 20, 10), {1'055});
  ASSERT_EQ(between.size(), 2U);
  EXPECT_EQ(between[0].rows, 3U);
  EXPECT_EQ(between[1].host, at(1'060));
}

// Each byte once, from where it is to where it belongs, and no call across an end: whatever is drawn.
TEST(CopyCalls, TogetherAreTheCopy) {
  for (unsigned seed = 1; seed <= 2'000; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](std::uint64_t from, std::uint64_t to) { return from + random() % (to - from + 1); };
    const std::uint64_t row = draw(1, 12);
    const CudaCopy copy = rows_of(row, draw(1, 9), row + draw(0, 9), row + draw(0, 9));
    std::vector<std::uintptr_t> ends;
    for (std::uintptr_t end = 1'000 + draw(1, 30); end < 1'200; end += draw(1, 60)) ends.push_back(end);
    std::vector<std::pair<char*, char*>> wanted;
    for (std::uint64_t r = 0; r < copy.rows; ++r) {
      for (std::uint64_t b = 0; b < row; ++b) {
        wanted.emplace_back(copy.host + r * copy.host_pitch + b, copy.device + r * copy.device_pitch + b);
      }
    }
    std::vector<std::pair<char*, char*>> seen;
    for (const CudaCopy& call : calls_of(copy, ends, draw(0, 30))) {
      ASSERT_GT(call.row, 0U) << "seed " << seed;
      const auto first = reinterpret_cast<std::uintptr_t>(call.host);
      const std::uintptr_t last = first + (call.rows - 1) * call.host_pitch + call.row - 1;
      for (const std::uintptr_t end : ends) ASSERT_FALSE(first < end && end <= last) << "seed " << seed;
      for (std::uint64_t r = 0; r < call.rows; ++r) {
        for (std::uint64_t b = 0; b < call.row; ++b) {
          seen.emplace_back(call.host + r * call.host_pitch + b, call.device + r * call.device_pitch + b);
        }
      }
    }
    ASSERT_EQ(seen, wanted) << "seed " << seed;
  }
}

}  // namespace
}  // namespace monarch::tensor
