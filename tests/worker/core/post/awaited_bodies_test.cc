#include "worker/core/post/awaited_bodies.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace monarch {
namespace {

using Awaited = AwaitedBodies<int, std::string>;

std::string take_all(Awaited& awaited) {
  std::string taken;
  while (auto next = awaited.take()) taken += std::to_string(next->message) + next->body.value_or("") + ' ';
  return taken;
}

TEST(AwaitedBodies, LetNothingPassWhatWaits) {
  Awaited awaited;
  awaited.said(1, {});
  awaited.said(2, 10);
  awaited.said(3, {});
  awaited.said(4, 11);
  EXPECT_EQ(take_all(awaited), "1 ");
  awaited.arrived(11, "b");
  EXPECT_EQ(take_all(awaited), "");
  EXPECT_EQ(awaited.waiting(), 3U);
  awaited.arrived(10, "a");
  EXPECT_EQ(take_all(awaited), "2a 3 4b ");
  EXPECT_TRUE(awaited.is_empty());
}

TEST(AwaitedBodies, KeepWhatComesBeforeItsMessage) {
  Awaited awaited;
  awaited.arrived(7, "x");
  EXPECT_EQ(awaited.early(), 1U);
  EXPECT_FALSE(awaited.is_empty());
  EXPECT_EQ(take_all(awaited), "");
  awaited.said(1, 7);
  EXPECT_EQ(take_all(awaited), "1x ");
}

TEST(AwaitedBodies, DropAllFromTheFirstThatIsLost) {
  Awaited awaited;
  EXPECT_EQ(awaited.lost(), std::vector<int>{});
  awaited.said(1, 1);
  awaited.said(2, {});
  awaited.arrived(9, "early");
  EXPECT_EQ(awaited.lost(), (std::vector{1, 2})) << "who gave them frees what came beside them";
  EXPECT_TRUE(awaited.is_empty());
  awaited.said(3, {});
  EXPECT_EQ(take_all(awaited), "3 ");
}

TEST(AwaitedBodies, TellThatTooMuchWaits) {
  const AwaitedLimits limits{.messages = 2, .bytes = 10, .early = 1};
  const auto is_too_much = [&limits](auto waits) {
    Awaited awaited(limits);
    waits(awaited);
    const bool is = awaited.is_too_much();
    const std::vector<int> dropped = is ? awaited.lost() : std::vector<int>{};
    EXPECT_TRUE(dropped.empty() || dropped.front() == 1);
    EXPECT_FALSE(is && awaited.is_too_much()) << "nothing is left";
    return is;
  };
  EXPECT_FALSE(is_too_much([](Awaited& awaited) {
    awaited.said(1, 1);
    awaited.said(2, {}, 10);
    awaited.arrived(2, "early");
  }));
  EXPECT_TRUE(is_too_much([](Awaited& awaited) {
    for (const int number : {1, 2, 3}) awaited.said(number, 1);
  }));
  EXPECT_TRUE(is_too_much([](Awaited& awaited) {
    awaited.said(1, 1);
    awaited.said(2, {}, 11);
  }));
  EXPECT_TRUE(is_too_much([](Awaited& awaited) {
    for (const std::uint64_t number : {1U, 2U}) awaited.arrived(number, "early");
  }));
  EXPECT_TRUE(is_too_much([](Awaited& awaited) { awaited.arrived(1, "early", 11); }));
  EXPECT_FALSE(is_too_much([](Awaited& awaited) {
    awaited.arrived(1, "early", 11);
    awaited.said(1, 1);
    (void)awaited.take();
  })) << "it is no longer early";
  EXPECT_FALSE(is_too_much([](Awaited& awaited) {
    awaited.said(1, {}, 11);
    (void)awaited.take();
  })) << "it waits no more";
}

}  // namespace
}  // namespace monarch
