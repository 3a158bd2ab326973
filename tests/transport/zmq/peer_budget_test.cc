#include "transport/zmq/peer_budget.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

Instant at(int milliseconds) { return Instant::since_boot(Duration::milliseconds(milliseconds)); }

// How many of as many as it likes it may send at that moment.
int taken(PeerBudget& budget, const char* peer, Instant now) {
  int count = 0;
  while (count < 10'000 && budget.take(peer, 0, now)) ++count;
  return count;
}

TEST(PeerBudget, GivesABurstAndThenTheRate) {
  PeerBudget budget({.per_second = 100, .burst = 20});
  EXPECT_EQ(taken(budget, "worker/0", at(1'000)), 20);
  EXPECT_EQ(taken(budget, "worker/0", at(1'005)), 0);
  EXPECT_EQ(taken(budget, "worker/0", at(1'050)), 5);
  EXPECT_EQ(taken(budget, "worker/0", at(60'000)), 20);
}

TEST(PeerBudget, IsEachPeersOwn) {
  PeerBudget budget({.per_second = 100, .burst = 20});
  EXPECT_EQ(taken(budget, "worker/0", at(0)), 20);
  EXPECT_EQ(taken(budget, "worker/1", at(0)), 20);
}

// Long messages are as dear as many short ones; what was refused costs nothing.
TEST(PeerBudget, CountsBytesAsWell) {
  PeerBudget budget({.per_second = 100, .burst = 20, .bytes_per_second = 1'000, .bytes_burst = 5'000});
  const auto takes = [&](std::uint64_t bytes, int when) { return budget.take("worker/0", bytes, at(when)); };
  for (int message = 0; message < 5; ++message) EXPECT_TRUE(takes(1'000, 1'000)) << message;
  EXPECT_FALSE(takes(1'000, 1'000));
  EXPECT_TRUE(takes(0, 1'000)) << "it has said five messages";
  EXPECT_FALSE(takes(1'000, 1'999));
  EXPECT_TRUE(takes(1'000, 2'000));
  EXPECT_FALSE(takes(5'001, 60'000)) << "more than it may ever say";
  EXPECT_TRUE(takes(5'000, 60'000));
  EXPECT_TRUE(budget.take("worker/1", 5'000, at(60'000))) << "each peer's own";
}

TEST(PeerBudget, WithoutAnAllowanceThereIsNoLimit) {
  PeerBudget budget({});
  EXPECT_EQ(taken(budget, "worker/0", at(0)), 10'000);
}

}  // namespace
}  // namespace monarch
