#include "transport/tensor/core/link_room.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace monarch::tensor {
namespace {

class LinkRoomTest : public ::testing::Test {
 protected:
  // Whether it has come in; who ends for it has left.
  bool come(LinkUse use) {
    const LinkRoom::Answer answer = room_.ask(use, now_);
    if (answer.ends) {
      room_.leave(*answer.ends);
      ended_ = answer.ends;
    }
    if (answer.has_place) room_.enter(++last_, use, now_);
    return answer.has_place;
  }
  // As many as come in.
  std::uint64_t fill(LinkUse use) {
    std::uint64_t count = 0;
    while (count < 100'000 && come(use)) ++count;
    return count;
  }

  LinkRoom room_;
  LinkNumber last_ = 0;
  std::optional<LinkNumber> ended_;
  Instant now_ = Instant::since_boot(Duration::seconds(100));
};

// Whatever a process may have, half of it stays the user's.
TEST_F(LinkRoomTest, TakesHalfOfWhatTheProcessMayHave) {
  for (const std::uint64_t files : {16U, 32U, 64U, 256U, 1'024U, 4'096U}) {
    room_ = {};
    room_.set_files(files);
    const std::uint64_t words = fill(LinkUse::kWords);
    const std::uint64_t all = words + fill(LinkUse::kRows) + 2 * room_.strangers();
    EXPECT_LE(all, files / 2) << files;
    EXPECT_GE(all, files / 2 - 4) << files;
    EXPECT_GE(words, 1U) << files;
  }
}

// Who has a link for words finds one for rows: else all would wait for each other.
TEST_F(LinkRoomTest, HasAPlaceForRowsForEachWhoHasOneForWords) {
  for (const std::uint64_t files : {16U, 100U, 256U, 1'024U, 4'096U}) {
    room_ = {};
    room_.set_files(files);
    while (room_.row_links() > 1) ASSERT_TRUE(come(LinkUse::kMoreRows));
    EXPECT_FALSE(come(LinkUse::kMoreRows)) << "it is tight";
    const std::uint64_t words = fill(LinkUse::kWords);
    EXPECT_GE(fill(LinkUse::kRows), words) << files;
  }
}

TEST_F(LinkRoomTest, SaysWhyThereIsNoPlace) {
  room_.set_files(256);
  EXPECT_EQ(fill(LinkUse::kWords), 42U);
  EXPECT_EQ(room_.full(),
            "it has no place for one more link: readers have 42, and it may have 256 open files (ulimit -n)");
}

TEST_F(LinkRoomTest, EndsALinkAtWhichNothingHappensForAnother) {
  room_.set_files(256);
  const std::uint64_t words = fill(LinkUse::kWords);
  now_ = now_ + LinkRoom::kLent;
  room_.reads(1, true, now_);
  room_.moves(2, now_);
  ASSERT_TRUE(come(LinkUse::kWords));
  EXPECT_EQ(ended_, 3U) << "the first reads, and the second has just spoken";
  EXPECT_EQ(fill(LinkUse::kWords), words - 3) << "those who have just come have theirs for a while";
  now_ = now_ + LinkRoom::kLent;
  ASSERT_TRUE(come(LinkUse::kWords));
  EXPECT_EQ(ended_, 2U);
  room_.reads(1, false, now_);
  now_ = now_ + LinkRoom::kLent;
  EXPECT_EQ(fill(LinkUse::kWords), words) << "nobody reads";
}

TEST_F(LinkRoomTest, EndsNoLinkByWhichAVersionIsMapped) {
  room_.set_files(64);
  const std::uint64_t rows = fill(LinkUse::kRows);
  for (LinkNumber link = 1; link <= rows; ++link) room_.maps(link, true, now_);
  now_ = now_ + Duration::seconds(3'600);
  EXPECT_FALSE(come(LinkUse::kRows));
  room_.maps(7, false, now_);
  EXPECT_FALSE(come(LinkUse::kRows)) << "it is lent for a while";
  now_ = now_ + LinkRoom::kLent;
  EXPECT_TRUE(come(LinkUse::kRows));
  EXPECT_EQ(ended_, 7U);
}

// A gang's own ranks have a place whatever readers have, and readers have fewer then.
TEST_F(LinkRoomTest, RefusesNobodyWhoPublishes) {
  room_.set_files(256);
  const std::uint64_t words = fill(LinkUse::kWords);
  const std::uint64_t rows = fill(LinkUse::kRows);
  ASSERT_TRUE(come(LinkUse::kPublishes));
  EXPECT_FALSE(ended_) << "all have just come";
  now_ = now_ + LinkRoom::kLent;
  ASSERT_TRUE(come(LinkUse::kPublishes));
  EXPECT_TRUE(ended_);
  room_ = {};
  room_.set_files(256);
  for (int rank = 0; rank < 50; ++rank) ASSERT_TRUE(come(LinkUse::kPublishes));
  EXPECT_LT(fill(LinkUse::kWords), words);
  EXPECT_LT(fill(LinkUse::kRows), rows);
  room_ = {};
  room_.set_files(256);
  for (int rank = 0; rank < 250; ++rank) ASSERT_TRUE(come(LinkUse::kPublishes));
  EXPECT_TRUE(come(LinkUse::kWords)) << "a reader has a few places all the same";
}

}  // namespace
}  // namespace monarch::tensor
