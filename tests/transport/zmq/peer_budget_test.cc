#include "transport/zmq/peer_budget.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

Instant at(int milliseconds) { return Instant::since_boot(Duration::milliseconds(milliseconds)); }

// How many of as many as it likes it may send at that moment.
int taken(PeerBudget& budget, const char* peer, Instant now) {
  int count = 0;
  while (count < 10'000 && budget.take(peer, now)) ++count;
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

TEST(PeerBudget, WithoutAnAllowanceThereIsNoLimit) {
  PeerBudget budget({});
  EXPECT_EQ(taken(budget, "worker/0", at(0)), 10'000);
}

}  // namespace
}  // namespace monarch
