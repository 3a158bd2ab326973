#include "supervisor/core/health/fair_deadline.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

Instant since_start(std::int64_t milliseconds) { return Instant::since_boot(Duration::milliseconds(milliseconds)); }

// As its owner does: until the time is up, at every look that it asks for.
Instant looked_at_until_over(FairDeadline& deadline, Instant now) {
  while (!deadline.over(now)) now = deadline.look_by(now);
  return now;
}

TEST(FairDeadline, IsOverInTimeWhereNobodyIsLate) {
  FairDeadline deadline(Duration::milliseconds(2'300), since_start(1'000));
  EXPECT_EQ(looked_at_until_over(deadline, since_start(1'000)), since_start(3'300));
  EXPECT_EQ(late_words(deadline.late()), "");
}

TEST(FairDeadline, CountsNoTimeInWhichItsOwnerWasLate) {
  FairDeadline deadline(Duration::seconds(2), since_start(0));
  EXPECT_FALSE(deadline.over(since_start(500)));
  EXPECT_FALSE(deadline.over(since_start(7'800))) << "nobody looked for 7.3 s, far beyond the end";
  EXPECT_EQ(deadline.until(), since_start(9'300)) << "what was left of it is left still";
  EXPECT_EQ(looked_at_until_over(deadline, since_start(7'800)), since_start(9'300));
  EXPECT_EQ(late_words(deadline.late()), " (this machine was late by 7.3s meanwhile, which does not count)");
}

TEST(FairDeadline, AddsUpEachTimeThatItsOwnerWasLate) {
  FairDeadline deadline(Duration::seconds(1), since_start(0));
  EXPECT_FALSE(deadline.over(since_start(2'000)));
  EXPECT_FALSE(deadline.over(since_start(5'000)));
  EXPECT_EQ(deadline.late(), Duration::seconds(5));
  EXPECT_TRUE(deadline.over(since_start(6'000)));
}

TEST(FairDeadline, CountsALookThatIsLateByLessThanABeat) {
  FairDeadline deadline(Duration::seconds(1), since_start(0));
  EXPECT_TRUE(deadline.over(since_start(1'400)));
  EXPECT_EQ(deadline.late(), Duration());
}

TEST(FairDeadline, IsNeverOverWithoutALimit) {
  FairDeadline deadline(Duration::forever(), since_start(0));
  EXPECT_FALSE(deadline.over(since_start(1'000'000'000)));
  EXPECT_EQ(late_words(deadline.late()), "");
}

}  // namespace
}  // namespace monarch
