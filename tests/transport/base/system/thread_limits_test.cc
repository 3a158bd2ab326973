#include "transport/base/system/thread_limits.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <cerrno>
#include <string>

#include "tests/transport/base/lower_limit.h"
#include "transport/base/sanitizers.h"

namespace monarch {
namespace {

TEST(ThreadLimits, AreNamedWithTheirValueAndTheirCommand) {
  const LowerLimit processes(RLIMIT_NPROC, 654);
  const Error error = thread_error(EAGAIN);
  EXPECT_EQ(error.code, ErrorCode::kBusy);
  EXPECT_EQ(error.message,
            "starting a thread: Resource temporarily unavailable (654 processes of this user at most: ulimit -u)");
  EXPECT_EQ(with_threads_limit("Resource temporarily unavailable"),
            "Resource temporarily unavailable (654 processes of this user at most: ulimit -u)");
  EXPECT_EQ(with_threads_limit("Invalid argument"), "Invalid argument");
}

// As in a process that began under such a limit of its stack.
TEST(ThreadLimits, NameAStackThatNothingHasRoomFor) {
  pthread_attr_t before;
  ASSERT_EQ(::pthread_getattr_default_np(&before), 0);
  pthread_attr_t large;
  ASSERT_EQ(::pthread_attr_init(&large), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&large, std::size_t{1} << 50U), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&large), 0);
  const std::string words = threads_limit();
  ASSERT_EQ(::pthread_setattr_default_np(&before), 0);
  EXPECT_EQ(words, "no room for its stack of 1024TiB: ulimit -s");
  (void)::pthread_attr_destroy(&large);
  (void)::pthread_attr_destroy(&before);
}

TEST(ThreadLimits, SayWhichStackIsTooSmall) {
  EXPECT_EQ(why_stack_is_too_small(), "");
  const LowerLimit stack(RLIMIT_STACK, 64U << 10U);
  EXPECT_EQ(why_stack_is_too_small(), "the stack may have 64KiB (ulimit -s), and 256KiB are needed at least");
}

}  // namespace
}  // namespace monarch
