#include "supervisor/client/continuation.h"

#include <gtest/gtest.h>

#include <thread>

#include "supervisor/client/job_view.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/journal/job_lock.h"
#include "tests/supervisor/client/scratch.h"
#include "transport/base/clock.h"

namespace monarch {
namespace {

class Continuation : public ::testing::Test {
 protected:
  JobDirectory ended(const std::string& spec = "version: 1\n") {
    JobDirectory job = *state_.create_job("train");
    EXPECT_TRUE(write_job_files(job, {.spec = spec, .spec_directory = "/"}).ok());
    EXPECT_TRUE(job.directory.write_file(kVerdictFile, "{}").ok());
    return job;
  }

  Scratch scratch_;
  StateDir state_ = *StateDir::open_for_writing(scratch_.path() + "/state");
};

TEST_F(Continuation, IsTheJobThatWasMadeToGoOn) {
  const JobDirectory first = ended();
  EXPECT_EQ(continued_as(state_, first), std::nullopt);
  const JobDirectory second = *make_continuation(state_, first);
  const JobDirectory third = *make_continuation(state_, second);
  EXPECT_EQ(continued_as(state_, first), second.id);
  EXPECT_EQ(continued_as(state_, second), third.id);
  EXPECT_EQ(continued_as(state_, third), std::nullopt);
  EXPECT_EQ(all_before(state_, third), (std::vector<std::string>{second.id, first.id}));
  EXPECT_EQ(needed_by(state_, first), second.id) << "it has not ended";
}

TEST_F(Continuation, IsNoneThatSaysNothingOfIt) {
  const JobDirectory first = ended();
  const JobDirectory second = *make_continuation(state_, first);
  ASSERT_TRUE(write_continues(second.directory, "other-0001").ok());
  EXPECT_EQ(continued_as(state_, first), std::nullopt);
}

// A supervisor has told its end before it has gone.
TEST_F(Continuation, WaitsForTheSupervisorThatIsLeaving) {
  const JobDirectory job = ended();
  const JobView view = *JobView::open(state_, job.id);
  auto lock = *JobLock::take(job.directory, this_process_as_holder(wall_now()));
  EXPECT_FALSE(view.is_left_within(Duration::zero()));
  std::thread leaving([&lock] { lock.reset(); });
  EXPECT_TRUE(view.is_left_within(Duration::seconds(60)));
  leaving.join();
}

// By a hand alone; but `wait` would follow it for ever.
TEST_F(Continuation, HasAnEndWhereTheFilesAreBentIntoARing) {
  const JobDirectory first = ended();
  const JobDirectory second = *make_continuation(state_, first);
  const JobDirectory third = *make_continuation(state_, second);
  const std::string back = "{\"v\":1,\"job\":\"" + first.id + "\"}";
  ASSERT_TRUE(third.directory.write_file(kContinuedFile, back).ok());
  ASSERT_TRUE(write_continues(first.directory, third.id).ok());
  for (const JobDirectory* job : {&first, &second, &third}) {
    EXPECT_EQ(continued_as(state_, *job), std::nullopt) << job->id;
    EXPECT_EQ(needed_by(state_, *job), std::nullopt) << job->id;
  }
  const JobDirectory alone = ended();
  ASSERT_TRUE(alone.directory.write_file(kContinuedFile, "{\"v\":1,\"job\":\"" + alone.id + "\"}").ok());
  ASSERT_TRUE(write_continues(alone.directory, alone.id).ok());
  EXPECT_EQ(continued_as(state_, alone), std::nullopt);
}

}  // namespace
}  // namespace monarch
