#include "worker/core/abandoned_allocation.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

constexpr const char* kShown =
    "JobId=7 JobName=hello UserId=u(1000) GroupId=u(1000) JobState=RUNNING Reason=None Requeue=0 BatchFlag=1 Reboot=0 "
    "NodeList=h[1-3] BatchHost=h1 NumNodes=3 Comment=monarch job hello-3fa2 \n";

TEST(AbandonedAllocation, IsReadFromWhatSlurmShows) {
  const AllocationFacts facts = read_allocation(kShown, 7);
  EXPECT_TRUE(facts.known && facts.running && facts.has_script);
  EXPECT_EQ(facts.first_node, "h1");
  EXPECT_FALSE(read_allocation(kShown, 8).known);
  EXPECT_FALSE(read_allocation("", 7).known);
  EXPECT_FALSE(read_allocation("JobId=77 JobState=RUNNING", 7).known);
}

TEST(AbandonedAllocation, IsGivenBackOnceItsFirstNodeIsLost) {
  const AllocationFacts facts = read_allocation(kShown, 7);
  EXPECT_EQ(fate_of(facts, "h2", false), AllocationFate::kWait);
  EXPECT_EQ(fate_of(facts, "h2", true), AllocationFate::kRelease);
  EXPECT_EQ(fate_of(facts, "h1", true), AllocationFate::kLeave) << "the script is here";
}

TEST(AbandonedAllocation, IsLeftAloneWhereItIsOverOrSomebodyHoldsIt) {
  AllocationFacts over = read_allocation(kShown, 7);
  over.running = false;
  EXPECT_EQ(fate_of(over, "h2", true), AllocationFate::kLeave);
  AllocationFacts held = read_allocation(kShown, 7);
  held.has_script = false;
  EXPECT_EQ(fate_of(held, "h2", true), AllocationFate::kLeave) << "salloc";
  EXPECT_EQ(fate_of({}, "h2", true), AllocationFate::kLeave);
}

TEST(AbandonedAllocation, HasNothingOfOthersInIt) {
  EXPECT_TRUE(only_ours("", "hello-3fa2"));
  EXPECT_TRUE(only_ours("batch\nextern\nhello-3fa2.h1\n hello-3fa2.h2 \n", "hello-3fa2"));
  EXPECT_FALSE(only_ours("hello-3fa2.h1\ntrain.sh\n", "hello-3fa2"));
  EXPECT_FALSE(only_ours("hello-3fa22.h1\n", "hello-3fa2"));
}

TEST(AbandonedAllocation, HasLostANodeThatSlurmTookOutOfIt) {
  const AllocationFacts facts = read_allocation(kShown, 7);
  EXPECT_EQ(nodes_query(facts), (std::vector<std::string>{"scontrol", "show", "hostnames", "h[1-3]"}));
  EXPECT_TRUE(lost_first_node("h2\nh3\n", facts, "h2"));
  EXPECT_TRUE(lost_first_node("h10\nh2", facts, "h2"));
  EXPECT_FALSE(lost_first_node("h1\nh2\nh3\n", facts, "h2"));
  for (const char* none : {"", "(null)\n", "h3\n"}) EXPECT_FALSE(lost_first_node(none, facts, "h2")) << none;
}

}  // namespace
}  // namespace monarch
