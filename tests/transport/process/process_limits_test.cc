#include "transport/process/process_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "tests/transport/base/lower_limit.h"
#include "transport/base/text.h"
#include "transport/process/pipe.h"

namespace monarch {
namespace {

TEST(ProcessLimits, AreNamedWithTheirValueAndTheirCommand) {
  const LowerLimit files(RLIMIT_NOFILE, 321);
  const LowerLimit processes(RLIMIT_NPROC, 654);
  EXPECT_EQ(with_limit({EMFILE, "make its output pipes"}).detail, "make its output pipes (321 at most: ulimit -n)");
  EXPECT_EQ(with_limit({EAGAIN, "fork"}).detail, "fork (654 processes of this user at most: ulimit -u)");
  EXPECT_EQ(with_limit({ENOENT, "exec /nonesuch"}).detail, "exec /nonesuch");
  EXPECT_EQ(with_limit({EAGAIN, "`setup`", 3}).detail, "`setup`") << "its own exit code says it";
  EXPECT_EQ(errno_error("open it", EMFILE).message, "open it: Too many open files (321 at most: ulimit -n)");
  EXPECT_EQ(fork_error(EAGAIN).message,
            "fork (654 processes of this user at most: ulimit -u): Resource temporarily unavailable");
}

TEST(ProcessLimits, AnErrorKeepsItsNumberAsAFailedStep) {
  const LowerLimit files(RLIMIT_NOFILE, 321);
  const StepFailure full = step_failure(errno_error("open it", EMFILE));
  EXPECT_EQ(full.error, EMFILE);
  EXPECT_EQ(full.detail, "open it") << "the system's word follows where it is told";
  const StepFailure other = step_failure(Error{ErrorCode::kInvalid, "it is a link"});
  EXPECT_EQ(other.error, EIO);
  EXPECT_EQ(other.detail, "it is a link");
}

TEST(Pipes, HaveEndedWhenNobodyWritesAndNothingIsLeft) {
  auto pipe = make_pipe(PipeReader::kDoesNotWait);
  ASSERT_TRUE(pipe.ok());
  EXPECT_FALSE(has_ended(pipe->reader.get()));
  ASSERT_EQ(::write(pipe->writer.get(), "x", 1), 1);
  pipe->writer.reset();
  EXPECT_FALSE(has_ended(pipe->reader.get())) << "one byte is to be read";
  char byte = 0;
  ASSERT_EQ(::read(pipe->reader.get(), &byte, 1), 1);
  EXPECT_TRUE(has_ended(pipe->reader.get()));
}

}  // namespace
}  // namespace monarch
