#include "worker/core/post/wish_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace monarch {
namespace {

constexpr DoorId kDoor{1};
constexpr ClaimOwner kMe{77};

PostWish wish_of(std::uint64_t number, std::uint64_t let_go = 0, std::size_t bytes = 0) {
  PostWish wish{.number = number, .owner = kMe, .let_go = let_go, .what = {}};
  if (bytes > 0) wish.what.env["A"] = std::string(bytes, 'x');
  return wish;
}
ClaimAnswer answer_of(std::uint64_t number, std::string error = {}, ClaimOwner owner = kMe) {
  return {.owner = owner,
          .granted = {.number = number, .error = std::move(error), .mesh = "procs", .ranks = {Rank(1)}}};
}
std::vector<std::uint64_t> numbers(const WishTable& table) {
  std::vector<std::uint64_t> all;
  for (const PostWish& one : table.reported()) all.push_back(one.number);
  return all;
}
std::vector<std::string> errors(WishTable& table) {
  std::vector<std::string> all;
  for (const auto& [door, granted] : table.take_answers()) all.push_back(granted.error);
  return all;
}
using Numbers = std::vector<std::uint64_t>;
using Texts = std::vector<std::string>;

TEST(WishTable, ReportsAWishUntilItIsAnswered) {
  WishTable table;
  EXPECT_FALSE(table.take_changed());
  table.said(kDoor, wish_of(1));
  EXPECT_TRUE(table.take_changed());
  EXPECT_EQ(numbers(table), Numbers{1});
  EXPECT_EQ(table.owners(), std::vector<ClaimOwner>{kMe});
  table.answered(answer_of(1, {}, ClaimOwner(5)));
  table.answered(answer_of(2));
  EXPECT_EQ(numbers(table), Numbers{1}) << "those were others";
  table.answered(answer_of(1));
  const auto told = table.take_answers();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].first, kDoor);
  EXPECT_EQ(told[0].second.ranks, std::vector<Rank>{Rank(1)});
  EXPECT_EQ(numbers(table), Numbers{});
  table.answered(answer_of(1));
  EXPECT_TRUE(table.take_answers().empty()) << "said twice";
}

TEST(WishTable, OneThatIsSaidAnewByALaterConnectionIsOne) {
  WishTable table;
  table.said(kDoor, wish_of(1));
  table.said(DoorId(2), wish_of(1));
  EXPECT_EQ(numbers(table), Numbers{1});
  table.left(kDoor);
  EXPECT_EQ(numbers(table), Numbers{1});
  table.answered(answer_of(1));
  EXPECT_EQ(table.take_answers().at(0).first, DoorId(2));
}

TEST(WishTable, WhatNobodyWaitsForIsReportedNoMore) {
  WishTable table;
  table.came(DoorId(2), kMe);
  table.came(DoorId(3), ClaimOwner());
  table.said(kDoor, wish_of(1));
  (void)table.take_changed();
  table.left(kDoor);
  EXPECT_TRUE(table.take_changed());
  EXPECT_EQ(numbers(table), Numbers{});
  EXPECT_EQ(table.owners(), std::vector<ClaimOwner>{kMe}) << "by its other connection";
  table.left(DoorId(2));
  EXPECT_TRUE(table.take_changed());
  EXPECT_TRUE(table.owners().empty());
  table.left(DoorId(3));
  EXPECT_FALSE(table.take_changed());
}

TEST(WishTable, OneThatIsLetGoBeforeItIsGrantedEndsAndIsLetGoAllTheSame) {
  WishTable table;
  table.said(kDoor, wish_of(1));
  table.said(kDoor, wish_of(2, 1));
  EXPECT_EQ(errors(table), Texts{"it was let go before it was granted"});
  EXPECT_EQ(numbers(table), Numbers{2}) << "it may have been granted already";
}

TEST(WishTable, RefusesWhatNoReportCarries) {
  WishTable table;
  table.said(kDoor, wish_of(0));
  table.said(kDoor, wish_of(1, 0, 60'000));
  PostWish deep = wish_of(2);
  deep.what.dims.resize(kClaimDims + 1);
  table.said(kDoor, deep);
  EXPECT_EQ(errors(table),
            (Texts{"a wish has a number and an owner",
                   "its program and variables have 58.6KiB of text, and 48KiB are the most: what is the same for all "
                   "belongs in the mesh's env",
                   "it has more than 8 dimensions"}));
  table.came(kDoor, kMe);
  PostWish forged = wish_of(3);
  forged.owner = ClaimOwner(78);
  table.said(kDoor, forged);
  EXPECT_EQ(errors(table), Texts{"it wishes in the name of another owner"});
  for (std::uint64_t i = 0; i <= kWishesOfADoor; ++i) table.said(kDoor, wish_of(10 + i));
  EXPECT_EQ(errors(table), Texts{"256 wishes of this process wait already"});
}

TEST(WishTable, ReportsAsMuchAsFitsAndTheRestLater) {
  WishTable table;
  table.said(kDoor, wish_of(1, 0, 40'000));
  table.said(kDoor, wish_of(2, 0, 40'000));
  table.said(kDoor, wish_of(3));
  EXPECT_EQ(numbers(table), Numbers{1});
  table.answered(answer_of(1));
  EXPECT_EQ(numbers(table), (Numbers{2, 3}));
  for (std::uint64_t i = 0; i < kWishesReported; ++i) table.said(kDoor, wish_of(10 + i));
  EXPECT_EQ(numbers(table).size(), kWishesReported);
}

}  // namespace
}  // namespace monarch
