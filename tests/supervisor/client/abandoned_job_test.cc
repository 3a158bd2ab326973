#include "supervisor/client/abandoned_job.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "supervisor/client/link/endpoint.h"
#include "supervisor/client/new_job.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/journal/job_lock.h"
#include "tests/supervisor/client/scratch.h"

namespace monarch {
namespace {

struct Jobs {
  Scratch scratch;
  Result<StateDir> state = StateDir::open_for_writing(scratch.path() + "/state");

  Result<JobDirectory> make(const std::string& name, const std::string& spec, bool listened = true) {
    auto job = state->create_job(name);
    if (!job.ok()) return job;
    EXPECT_TRUE(write_job_files(*job, {.spec = spec, .spec_directory = "/"}).ok());
    const Endpoint endpoint{.host = "here", .pid = 7, .term = Term(1), .socket = "/run/x.sock"};
    if (listened) {
      EXPECT_TRUE(job->directory.write_file(kEndpointFile, write_endpoint(endpoint)).ok());
    }
    return job;
  }
  std::optional<std::string> find(const std::string& spec) { return abandoned_job_of(*state, {"mix", spec}); }
};

TEST(AbandonedJob, IsOneOfTheSameNameAndSpec) {
  Jobs jobs;
  ASSERT_TRUE(jobs.state.ok()) << jobs.state.error().message;
  EXPECT_EQ(jobs.find("version: 1"), std::nullopt);
  const auto job = jobs.make("mix", "version: 1");
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(jobs.find("version: 1"), job->id);
  EXPECT_EQ(jobs.find("version: 1 # another"), std::nullopt);
  EXPECT_EQ(abandoned_job_of(*jobs.state, {"other", "version: 1"}), std::nullopt);
}

TEST(AbandonedJob, IsNoneThatLivesOrHasEndedOrIsJustBeingMade) {
  Jobs jobs;
  ASSERT_TRUE(jobs.state.ok()) << jobs.state.error().message;
  const auto live = jobs.make("mix", "version: 1");
  const auto ended = jobs.make("mix", "version: 1");
  const auto made = jobs.make("mix", "version: 1", false);
  ASSERT_TRUE(live.ok() && ended.ok() && made.ok());
  const auto lock = JobLock::take(live->directory, this_process_as_holder({}));
  ASSERT_TRUE(lock.ok());
  ASSERT_TRUE(ended->directory.write_file(kVerdictFile, "{}").ok());
  EXPECT_EQ(jobs.find("version: 1"), std::nullopt);
}

}  // namespace
}  // namespace monarch
