#include "transport/process/run_program.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <cstdlib>

#include "transport/base/clock.h"
#include "transport/base/unique_fd.h"

namespace monarch {
namespace {

std::vector<std::string> shell(const std::string& line) { return {"/bin/sh", "-c", line}; }

TEST(RunProgram, TellsWhatItWrote) {
  EXPECT_EQ(run_program(shell("echo a; echo words >&2; echo b")).value(), "a\nb\n");
  EXPECT_EQ(run_program({"true"}).value(), "");
  EXPECT_EQ(run_program(shell("head -c 300000 /dev/zero")).value().size(), 300'000U);
}

TEST(RunProgram, TellsTheLastThatAFailingOneSaid) {
  const auto failed = run_program(shell("echo out; echo first >&2; printf 'last\\033\\n' >&2; exit 3"));
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(failed.error().message.find("last"), 0U) << failed.error().message;
  EXPECT_EQ(failed.error().message.find('\033'), std::string::npos);
  EXPECT_NE(run_program({"false"}).error().message.find("ended with 1"), std::string::npos);
  EXPECT_NE(run_program(shell("kill -9 $$")).error().message.find("signal 9"), std::string::npos);
}

TEST(RunProgram, KnowsThatThereIsNone) {
  EXPECT_EQ(run_program({"/nonesuch/program"}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(run_program({"there-is-no-such-program"}).error().code, ErrorCode::kNotFound);
}

TEST(RunProgram, HidesWhatItIsNotToSee) {
  ::setenv("MONARCH_TEST_ONE", "1", 1);
  ::setenv("MONARCH_TEST_TWO", "2", 1);
  const std::string line = "echo ${MONARCH_TEST_ONE-} ${MONARCH_TEST_TWO-}";
  EXPECT_EQ(run_program(shell(line)).value(), "1 2\n");
  EXPECT_EQ(run_program(shell(line), {.without = {"MONARCH_TEST_TWO"}}).value(), "1\n");
  EXPECT_EQ(run_program(shell(line), {.without = {"MONARCH_TEST_*"}}).value(), "\n");
}

TEST(RunProgram, WaitsNoLongerThanItMay) {
  const Instant begun = boot_now();
  const auto late = run_program(shell("sleep 60"), {.deadline = Duration::milliseconds(200)});
  EXPECT_EQ(late.error().code, ErrorCode::kTimeout);
  EXPECT_LT(boot_now() - begun, Duration::seconds(5));
}

TEST(RunProgram, EndsWhereNobodyWantsItsAnswer) {
  const UniqueFd event(::eventfd(1, EFD_CLOEXEC));
  const auto left = run_program(shell("sleep 60"), {.interrupt = event.get()});
  EXPECT_EQ(left.error().code, ErrorCode::kGone);
}

TEST(RunProgram, TakesNoMoreThanItMay) {
  EXPECT_EQ(run_program(shell("head -c 5000 /dev/zero"), {.bytes = 1000}).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace monarch
