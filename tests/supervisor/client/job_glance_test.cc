#include "supervisor/client/job_glance.h"

#include <gtest/gtest.h>

#include "supervisor/client/away.h"
#include "supervisor/client/job_resolver.h"
#include "tests/supervisor/client/scratch.h"

namespace monarch {

TEST(JobGlance, IsReadAsItWasWritten) {
  const Scratch scratch;
  const auto folder = *SecureDirectory::open(scratch.path());
  EXPECT_FALSE(read_glance(folder));
  const JobGlance glance{.life = "ended", .phase = "failed", .exit_code = 7, .running = 3};
  ASSERT_TRUE(write_glance(folder, glance).ok());
  const auto seen = read_glance(folder);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->glance, glance);
  EXPECT_GT(seen->at.nanoseconds_since_epoch, 0);
}

TEST(JobGlance, IsWordsThatSteerNoTerminalWhoeverSaysIt) {
  const auto glance = glance_of(*parse_json(R"({"life":"immortal","phase":"run\u001b[2J","running":2})"));
  EXPECT_EQ(glance.life, "");
  EXPECT_EQ(glance.phase, "");
  EXPECT_EQ(glance.running, 2U);
  EXPECT_EQ(glance_of(*parse_json(R"({"life":"live","phase":"running"})")).phase, "running");
  EXPECT_EQ(glance_of(*parse_json(R"({"phase":")" + std::string(33, 'x') + "\"}")).phase, "");
}

TEST(JobGlance, DecidesWhetherAJobElsewhereCountsAsLive) {
  const Scratch scratch;
  const auto state = *StateDir::open_for_writing(scratch.path() + "/state");
  const auto job = *state.create_job("hello");
  ASSERT_TRUE(job.directory.write_file(kAwayFile, write_away({.host = "h1"})).ok());
  EXPECT_EQ(list_jobs(state)->front().life, JobLife::kLive) << "nobody has asked it since it was started";
  ASSERT_TRUE(write_glance(job.directory, {.life = "ended"}).ok());
  EXPECT_EQ(list_jobs(state)->front().life, JobLife::kEnded);
  ASSERT_TRUE(write_glance(job.directory, {.life = "abandoned"}).ok());
  EXPECT_EQ(list_jobs(state)->front().life, JobLife::kAbandoned);
}

}  // namespace monarch
