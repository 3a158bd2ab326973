#include "transport/process/process_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "transport/base/text.h"
#include "transport/process/pipe.h"

namespace monarch {
namespace {

class Limit {
 public:
  Limit(__rlimit_resource which, rlim_t most) : which_(which) {
    EXPECT_EQ(::getrlimit(which_, &before_), 0);
    const rlimit lower{most, before_.rlim_max};
    EXPECT_EQ(::setrlimit(which_, &lower), 0);
  }
  ~Limit() { EXPECT_EQ(::setrlimit(which_, &before_), 0); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  __rlimit_resource which_;
  rlimit before_{};
};

TEST(ProcessLimits, AreNamedWithTheirValueAndTheirCommand) {
  const Limit files(RLIMIT_NOFILE, 321);
  const Limit processes(RLIMIT_NPROC, 654);
  EXPECT_EQ(with_limit({EMFILE, "make its output pipes"}).detail, "make its output pipes (321 at most: ulimit -n)");
  EXPECT_EQ(with_limit({EAGAIN, "fork"}).detail, "fork (654 processes of this user at most: ulimit -u)");
  EXPECT_EQ(with_limit({ENOENT, "exec /nonesuch"}).detail, "exec /nonesuch");
  EXPECT_EQ(with_limit({EAGAIN, "`setup`", 3}).detail, "`setup`") << "its own exit code says it";
  EXPECT_EQ(errno_error("open it", EMFILE).message, "open it: Too many open files (321 at most: ulimit -n)");
  EXPECT_EQ(fork_error(EAGAIN).message,
            "fork (654 processes of this user at most: ulimit -u): Resource temporarily unavailable");
}

TEST(ProcessLimits, AnErrorKeepsItsNumberAsAFailedStep) {
  const Limit files(RLIMIT_NOFILE, 321);
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
