#include "tests/sim/durable_account.h"

#include <gtest/gtest.h>

namespace monarch::sim {
namespace {

TEST(DurableAccount, HoldsWhatTheSupervisorWasToldAndAllBeforeIt) {
  DurableAccount account;
  account.told({Term(1), 4});
  EXPECT_TRUE(account.holds({Term(1), 3}));
  EXPECT_TRUE(account.holds({Term(1), 4}));
  EXPECT_FALSE(account.holds({Term(1), 5}));
  EXPECT_FALSE(account.holds({Term(2), 1}));
}

// Who comes after acts by what it finds there.
TEST(DurableAccount, HoldsWhatWasOnTheDiskWhenItsSupervisorDiedBeforeItWasTold) {
  DurableAccount account;
  account.appended({Term(1), 7}, 20);
  account.appended({Term(1), 8}, 22);
  account.recovered(21);
  EXPECT_TRUE(account.holds({Term(1), 7}));
  EXPECT_FALSE(account.holds({Term(1), 8})) << "it never was";
}

TEST(DurableAccount, FollowsTheFirstRecordOfADecisionWhichIsItsInput) {
  DurableAccount account;
  account.appended({Term(1), 7}, 20);
  account.appended({Term(1), 7}, 21);
  account.recovered(20);
  EXPECT_TRUE(account.holds({Term(1), 7}));
}

TEST(DurableAccount, DoesNotTakeARecordForTheLostOneWhoseNumberItHas) {
  DurableAccount account;
  account.appended({Term(1), 7}, 20);
  account.recovered(19);
  account.appended({Term(2), 1}, 20);
  account.recovered(20);
  EXPECT_FALSE(account.holds({Term(1), 7}));
  EXPECT_TRUE(account.holds({Term(2), 1}));
}

}  // namespace
}  // namespace monarch::sim
