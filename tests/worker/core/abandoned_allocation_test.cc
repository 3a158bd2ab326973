#include "worker/core/abandoned_allocation.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace monarch {
namespace {

constexpr const char* kShown =
    "JobId=7 JobName=hello UserId=u(1000) GroupId=u(1000) JobState=RUNNING Reason=None Requeue=0 BatchFlag=1 Reboot=0 "
    "NodeList=h[1-3] BatchHost=h1 NumNodes=3 Comment=monarch job hello-3fa2 \n";

TEST(AbandonedAllocation, IsReadFromWhatSlurmShows) {
  const AllocationFacts facts = read_allocation(kShown, 7);
  EXPECT_TRUE(facts.known && facts.running && facts.has_script && facts.is_ours);
  EXPECT_EQ(facts.first_node, "h1");
  EXPECT_FALSE(read_allocation(kShown, 8).known);
  EXPECT_FALSE(read_allocation("", 7).known);
  EXPECT_FALSE(read_allocation("JobId=77 JobState=RUNNING", 7).known);
}

// As the worker of h2 sees it, whose step is 12.
AllocationView view_of(std::string_view nodes, std::string_view steps) {
  return {.job_id = "hello-3fa2",
          .node = "h2",
          .step = 12,
          .nodes = read_nodes(nodes),
          .steps = read_allocation_steps(steps),
          .step_nodes = {"h2"}};
}

AllocationFate fate(std::string_view nodes, std::string_view steps) {
  return fate_of(read_allocation(kShown, 7), view_of(nodes, steps));
}

TEST(AbandonedAllocation, IsAskedFor) {
  EXPECT_EQ(nodes_query(read_allocation(kShown, 7)),
            (std::vector<std::string>{"scontrol", "show", "hostnames", "h[1-3]"}));
  EXPECT_EQ(allocation_steps_query(7)[3], "--jobs=7");
}

TEST(AbandonedAllocation, IsGivenBackOnceItsFirstNodeIsLost) {
  EXPECT_EQ(fate("h1\nh2\n", "7.12|h2|hello-3fa2.h2\n7.batch|h1|batch\n"), AllocationFate::kWait);
  EXPECT_EQ(fate("h2\nh3\n", "7.12|h2|hello-3fa2.h2\n7.batch|h1|batch\n"), AllocationFate::kRelease);
  EXPECT_EQ(fate("h10\nh2", "7.12|h2|hello-3fa2.h2\n7.extern|h[1-3]|extern\n"), AllocationFate::kRelease);
  EXPECT_EQ(fate("h2\n", ""), AllocationFate::kRelease);
  for (const char* none : {"", "(null)\n", "h3\n"}) EXPECT_EQ(fate(none, ""), AllocationFate::kWait) << none;
}

TEST(AbandonedAllocation, IsTheLastOnesToGiveBack) {
  // One that is not done waits on as long as there is a supervisor.
  EXPECT_EQ(fate("h2\nh3\n", "7.12|h2|hello-3fa2.h2\n7.13|h3|hello-3fa2.h3\n"), AllocationFate::kWait);
  EXPECT_EQ(fate("h2\nh3\n", "7.12|h2|hello-3fa2.h2\n7.4|h3|hello-3fa2.h3\n"), AllocationFate::kLeave);
  // Lost nodes never say that their steps have ended.
  EXPECT_EQ(fate("h2\n", "7.11|h1|hello-3fa2.h1\n7.12|h2|hello-3fa2.h2\n7.4|h3|hello-3fa2.h3\n"),
            AllocationFate::kRelease);
}

// As the worker of this node sees it, whose step is 12 and has h1 to h4.
AllocationFate fate_in_one_step(const std::string& node, std::string_view nodes, std::string_view steps,
                                bool none_before = false) {
  AllocationView view = view_of(nodes, steps);
  view.node = node;
  view.step_nodes = read_nodes("h1\nh2\nh3\nh4\n");
  view.none_before = none_before;
  return fate_of(read_allocation(kShown, 7), view);
}

TEST(AbandonedAllocation, IsLookedAtByTheFirstNodeOfAStepThatHasMany) {
  const char* const steps = "7.12|h[1-4]|hello-3fa2.+1.1\n7.batch|h1|batch\n";
  EXPECT_EQ(fate_in_one_step("h2", "h1\nh2\nh3\n", steps), AllocationFate::kWait);
  EXPECT_EQ(fate_in_one_step("h2", "h2\nh3\n", steps), AllocationFate::kLook);
  EXPECT_EQ(fate_in_one_step("h3", "h2\nh3\n", steps), AllocationFate::kLookBefore);
  EXPECT_EQ(fate_in_one_step("h3", "h1\nh2\nh3\n", steps), AllocationFate::kLookBefore) << "and leaves it to h2";
  EXPECT_EQ(fate_in_one_step("h3", "h1\nh2\nh3\n", steps, true), AllocationFate::kWait) << "h1 may be well";
  EXPECT_EQ(fate_in_one_step("h3", "h2\nh3\n", steps, true), AllocationFate::kLook) << "h2 has no worker any more";
  EXPECT_EQ(fate_in_one_step("h3", "h3\nh5\n", steps), AllocationFate::kRelease) << "all others of its step are lost";
  const std::string more = std::string(steps) + "7.13|h5|hello-3fa2.h5\n";
  EXPECT_EQ(fate_in_one_step("h2", "h2\nh3\nh5\n", more), AllocationFate::kWait);
  EXPECT_EQ(fate_in_one_step("h2", "h2\nh3\n", more), AllocationFate::kLook) << "h5 is lost";
}

TEST(AbandonedAllocation, IsLeftToTheFirstFewNodesOfAStepThatHasMany) {
  AllocationView view = view_of("", "7.12|h[01-40]|hello-3fa2.+1.1\n");
  for (int n = 2; n <= 40; ++n) view.nodes.insert((n < 10 ? "h0" : "h") + std::to_string(n));
  view.step_nodes = view.nodes;
  AllocationFacts facts = read_allocation(kShown, 7);
  facts.first_node = "h01";
  view.node = "h02";
  EXPECT_EQ(fate_of(facts, view), AllocationFate::kLook);
  view.node = "h10";
  EXPECT_EQ(fate_of(facts, view), AllocationFate::kLookBefore);
  EXPECT_EQ(before_of(facts, view).size(), 8U);
  EXPECT_EQ(*before_of(facts, view).begin(), "h02");
  view.node = "h11";
  EXPECT_EQ(fate_of(facts, view), AllocationFate::kLeave);
}

TEST(AbandonedAllocation, IsLeftToAStepThatHasMany) {
  EXPECT_EQ(fate("h2\nh3\n", "7.12|h2|hello-3fa2.h2\n7.4|h[3-4]|hello-3fa2.+1.1\n"), AllocationFate::kLeave);
  EXPECT_EQ(fate("h2\nh3\n", "7.12|h2|hello-3fa2.h2\n7.14|h3,h5|hello-3fa2.+1.1\n"), AllocationFate::kWait);
}

TEST(AbandonedAllocation, HasTheOthersLookedAtByAStep) {
  AllocationView view = view_of("h2\nh3\nh4\n", "");
  view.step_nodes = read_nodes("h1\nh2\nh3\nh4\n");
  const auto words = others_query(
      {.job = 7, .job_id = "hello-3fa2", .job_uuid = "00ff", .nodes = others_of(view), .slurm_conf = "/c/slurm.conf"});
  const std::vector<std::string> first(words.begin(), words.begin() + 4);
  EXPECT_EQ(first, (std::vector<std::string>{"/usr/bin/env", "SLURM_CONF=/c/slurm.conf", "srun", "--jobid=7"}));
  for (const char* word : {"--nodes=2", "--ntasks=2", "--nodelist=h3,h4", "--job-name=hello-3fa2.+look"}) {
    EXPECT_NE(std::find(words.begin(), words.end(), word), words.end()) << word;
  }
  EXPECT_NE(words.back().find("'[-]-job 00ff'"), std::string::npos);
}

TEST(AbandonedAllocation, IsLeftAloneWhereItIsOverOrSomebodyHoldsIt) {
  const AllocationView view = view_of("h2\nh3\n", "");
  AllocationFacts over = read_allocation(kShown, 7);
  over.running = false;
  EXPECT_EQ(fate_of(over, view), AllocationFate::kLeave);
  AllocationFacts held = read_allocation(kShown, 7);
  held.has_script = false;
  EXPECT_EQ(fate_of(held, view), AllocationFate::kLeave) << "salloc";
  AllocationFacts others = read_allocation(kShown, 7);
  others.is_ours = false;
  EXPECT_EQ(fate_of(others, view), AllocationFate::kLeave);
  const std::string array = "ArrayJobId=7 ArrayTaskId=3 " + std::string(kShown);
  EXPECT_EQ(fate_of(read_allocation(array, 7), view), AllocationFate::kLeave);
  EXPECT_EQ(fate_of({}, view), AllocationFate::kLeave);
  EXPECT_EQ(fate_of(read_allocation(kShown, 7), "h1"), AllocationFate::kLeave) << "the script is here";
}

TEST(AbandonedAllocation, IsLeftAloneWhereOthersAreInIt) {
  EXPECT_EQ(fate("h2\n", "7.12|h2|hello-3fa2.h2\n7.13|h2|train.sh\n"), AllocationFate::kLeave);
  EXPECT_EQ(fate("h2\n", "7.12|h2|hello-3fa2.h2\n7.13|h2|hello-3fa22.h2\n"), AllocationFate::kLeave);
  for (const char* odd : {"7.interactive|h2|sh", "|", "7", "7.12", "7.x|h2|hello-3fa2.h2", "7.14|hello-3fa2.h2"}) {
    EXPECT_EQ(fate("h2\n", odd), AllocationFate::kLeave) << odd;
  }
}

}  // namespace
}  // namespace monarch
