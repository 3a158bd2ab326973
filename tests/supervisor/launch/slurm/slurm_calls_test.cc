#include "supervisor/launch/slurm/slurm_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/supervisor/launch/slurm/guarded_calls.h"

namespace monarch {
namespace {

using ::testing::HasSubstr;

class SlurmAsks : public GuardedCallsTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    open_calls(Duration::milliseconds(300));
  }

  void ask(const std::string& script) {
    calls_->call({"/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "sh", "-c", script},
                 [this](Result<std::string> answer) { answer_ = std::move(answer); });
  }

  Error error_of(const std::string& script) {
    ask(script);
    EXPECT_TRUE(run_until([&] { return answer_.has_value(); }));
    if (!answer_ || answer_->ok()) return Error{ErrorCode::kInternal, "no error"};
    return answer_->error();
  }

  std::optional<Result<std::string>> answer_;
};

TEST_F(SlurmAsks, GetWhatWasWritten) {
  ask("echo one; echo words >&2; echo two");
  ASSERT_TRUE(run_until([&] { return answer_.has_value(); }));
  ASSERT_TRUE(answer_->ok());
  EXPECT_EQ(**answer_, "one\ntwo\n");
  EXPECT_EQ(calls_->running(), 0U);
}

TEST_F(SlurmAsks, GetTheLastThingThatWasSaid) {
  const Error error = error_of("echo first >&2; echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1");
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_EQ(error.message, "sh: slurm_load_jobs error: Invalid job id specified");
}

TEST_F(SlurmAsks, GetHowItEndedWhereNothingWasSaid) { EXPECT_THAT(error_of("exit 7").message, HasSubstr("7")); }

TEST_F(SlurmAsks, EndWhatDoesNotAnswer) {
  const Error error = error_of("sleep 1000");
  EXPECT_EQ(error.code, ErrorCode::kTimeout);
  EXPECT_EQ(error.message, "sh did not answer within 300ms");
  EXPECT_TRUE(run_until([&] { return played_->running() == 0; }));
}

TEST_F(SlurmAsks, CountNoTimeInWhichTheirOwnLoopWasLate) {
  ask("sleep 1000");
  (void)::poll(nullptr, 0, 2'000);  // nobody turns the loop
  ASSERT_TRUE(run_until([&] { return answer_.has_value(); }));
  EXPECT_THAT(answer_->error().message, HasSubstr("sh did not answer within 300ms (this machine was late by "));
}

TEST_F(SlurmAsks, RefuseAnAnswerWithoutEnd) {
  EXPECT_THAT(error_of("head -c 1200000 /dev/zero").message, HasSubstr("more than 1048576 bytes"));
}

TEST_F(SlurmAsks, SayThatTheGuardHasGone) {
  ask("sleep 1000");
  ASSERT_TRUE(run_until([&] { return played_->running() == 1; }));
  played_->leave();
  ASSERT_TRUE(run_until([&] { return answer_.has_value(); }));
  EXPECT_EQ(answer_->error().code, ErrorCode::kGone);
  answer_.reset();
  EXPECT_EQ(error_of("true").code, ErrorCode::kGone);
}

TEST_F(SlurmAsks, EndWithWhoeverAsked) {
  ask("sleep 1000");
  ASSERT_TRUE(run_until([&] { return played_->running() == 1; }));
  calls_.reset();
  EXPECT_TRUE(run_until([&] { return played_->running() == 0; }));
  EXPECT_FALSE(answer_.has_value());
}

}  // namespace
}  // namespace monarch
