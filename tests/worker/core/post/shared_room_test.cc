#include "worker/core/post/shared_room.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

// As many calls of so many bytes as it has room for.
std::size_t fill(SharedRoom<int>& room, int who, std::uint64_t bytes) {
  std::size_t count = 0;
  for (; room.has_room(who, bytes); ++count) room.add(who, bytes);
  return count;
}

TEST(SharedRoom, GivesOneAloneAHalfAndTwoAThirdEach) {
  SharedRoom<int> room({.calls = 12, .bytes = 1'000});
  EXPECT_EQ(fill(room, 1, 1), 6U);
  EXPECT_EQ(fill(room, 2, 1), 3U) << "as many as it leaves";
  room.remove(1, 1);
  room.remove(1, 1);
  EXPECT_EQ(fill(room, 1, 1), 1U);
  EXPECT_EQ(fill(room, 2, 1), 1U);
  EXPECT_EQ(room.of(1).calls, 5U);
  EXPECT_EQ(room.of(2).calls, 4U);
}

TEST(SharedRoom, HasRoomForWhoeverComesWithinWhatThereIs) {
  SharedRoom<int> room({.calls = 64, .bytes = 1'000});
  std::size_t all = 0;
  for (int who = 1; who <= 6; ++who) {
    const std::size_t got = fill(room, who, 1);
    EXPECT_GT(got, 0U) << who;
    all += got;
  }
  EXPECT_LE(all, 64U);
}

TEST(SharedRoom, CountsBytesAndLetsEachHaveOneLargeCall) {
  SharedRoom<int> room({.calls = 100, .bytes = 100});
  EXPECT_EQ(fill(room, 1, 10), 5U);
  EXPECT_TRUE(room.has_room(2, 1'000));
  room.add(2, 1'000);
  EXPECT_FALSE(room.has_room(2, 1));
  EXPECT_FALSE(room.has_room(1, 1));
  room.remove(2, 1'000);
  EXPECT_EQ(room.of(2).bytes, 0U);
  for (int i = 0; i < 5; ++i) room.remove(1, 10);
  EXPECT_TRUE(room.is_empty());
}

}  // namespace
}  // namespace monarch
