#include "cli/start/allocation_check.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

std::optional<std::string> of(QueuedJob::State state, std::string word, std::string nodes = "h[1-4]") {
  QueuedJob found{.state = state, .job = 7, .word = std::move(word)};
  found.nodes = std::move(nodes);
  return objection_to({.job = 7, .nodes = {"h1", "h2"}}, found);
}

TEST(AllocationCheck, TakesOneThatRunsOnTheseNodes) {
  EXPECT_EQ(of(QueuedJob::State::kRunning, "RUNNING"), std::nullopt);
  EXPECT_EQ(of(QueuedJob::State::kRunning, "RUNNING", "h[1-"), std::nullopt) << "what cannot be read says nothing";
}

TEST(AllocationCheck, SaysWhatBecameOfOneThatCannotBeUsed) {
  EXPECT_EQ(of(QueuedJob::State::kOver, "TIMEOUT"), "Slurm's job 7 is over: TIMEOUT");
  EXPECT_EQ(of(QueuedJob::State::kEnding, "COMPLETING"), "Slurm's job 7 is over: COMPLETING");
  EXPECT_EQ(of(QueuedJob::State::kWaiting, "PENDING"), "Slurm's job 7 has no nodes: it is PENDING");
  EXPECT_EQ(of(QueuedJob::State::kUnknown, ""), "Slurm's job 7 is not known to Slurm (any more)");
  EXPECT_EQ(of(QueuedJob::State::kRunning, "RUNNING", "h[2-3]"), "Slurm's job 7 has h[2-3], and not h[1-2]");
}

}  // namespace
}  // namespace monarch
