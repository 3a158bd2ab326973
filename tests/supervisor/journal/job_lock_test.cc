#include "supervisor/journal/job_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/supervisor/journal/child_process.h"
#include "tests/supervisor/journal/temporary_directory.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

using testing::TemporaryDirectory;

class JobLockTest : public ::testing::Test {
 protected:
  SecureDirectory job() const { return *SecureDirectory::open(directory_.path()); }
  TemporaryDirectory directory_;
};

TEST_F(JobLockTest, IsHeldByOneAndNamesTheHolder) {
  const SecureDirectory directory = job();
  EXPECT_FALSE(is_locked(directory).value());
  const LockHolder self = this_process_as_holder(wall_now());
  EXPECT_EQ(self.pid, ::getpid());
  EXPECT_GT(self.start_ticks, 0U);
  EXPECT_EQ(self.boot_id.size(), 36U);
  auto lock = JobLock::take(directory, self);
  ASSERT_TRUE(lock.ok()) << lock.error().message;
  struct stat status {};
  ASSERT_EQ(::stat((directory_.path() + "/lock").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);

  const auto holder = lock_holder(directory);
  ASSERT_TRUE(holder.ok());
  ASSERT_TRUE(holder->has_value());
  EXPECT_EQ((*holder)->pid, ::getpid());
  EXPECT_EQ((*holder)->host, self.host);
  EXPECT_EQ((*holder)->started, self.started);
  EXPECT_EQ((*holder)->start_ticks, self.start_ticks);
  EXPECT_EQ((*holder)->boot_id, self.boot_id);

  const auto second = JobLock::take(directory, self);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kBusy);
  for (const std::string& part : {text("pid ", ::getpid()), self.host, self.started, directory_.path()}) {
    EXPECT_NE(second.error().message.find(part), std::string::npos) << second.error().message;
  }
  lock->reset();
  EXPECT_FALSE(is_locked(directory).value());
  EXPECT_TRUE(JobLock::take(directory, self).ok());
}

TEST_F(JobLockTest, AnotherProcessIsRefused) {
  const auto lock = JobLock::take(job(), this_process_as_holder(wall_now()));
  ASSERT_TRUE(lock.ok());
  const int outcome = testing::in_child([&] {
    const SecureDirectory directory = job();
    if (!is_locked(directory).value()) return 1;
    const auto second = JobLock::take(directory, this_process_as_holder(wall_now()));
    return second.ok() ? 2 : second.error().code == ErrorCode::kBusy ? 0 : 3;
  });
  EXPECT_EQ(outcome, 0);
}

TEST_F(JobLockTest, GoesWithItsHoldersDeath) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = JobLock::take(job(), this_process_as_holder(wall_now()));
    const char ok = lock.ok() ? 'y' : 'n';
    if (::write(ends[1], &ok, 1) != 1) ::_exit(1);
    while (true) ::pause();
  }
  ASSERT_GT(child, 0);
  ::close(ends[1]);
  char ok = 0;
  ASSERT_EQ(::read(ends[0], &ok, 1), 1);
  ::close(ends[0]);
  ASSERT_EQ(ok, 'y');
  const SecureDirectory directory = job();
  const auto holder = lock_holder(directory);
  ASSERT_TRUE(holder.ok() && holder->has_value());
  EXPECT_EQ((*holder)->pid, child);
  EXPECT_EQ(JobLock::take(directory, this_process_as_holder(wall_now())).error().code, ErrorCode::kBusy);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_FALSE(is_locked(directory).value());
  EXPECT_TRUE(JobLock::take(directory, this_process_as_holder(wall_now())).ok());
}

TEST_F(JobLockTest, TheGuardsIsHeldByWhoHasACopyOfItsDescriptor) {
  const SecureDirectory directory = job();
  auto lock = take_guard_lock(directory);
  ASSERT_TRUE(lock.ok()) << lock.error().message;
  LockHolder guard = this_process_as_holder(wall_now());
  guard.pid = 4711;
  ASSERT_TRUE(name_guard(*lock, directory, guard).ok());
  UniqueFd copy(::dup(lock->get()));
  lock->reset();
  const auto second = take_guard_lock(directory);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kBusy);
  for (const std::string& part : {std::string("a guard holds "), std::string("pid 4711 on "), guard.started}) {
    EXPECT_NE(second.error().message.find(part), std::string::npos) << second.error().message;
  }
  copy.reset();
  EXPECT_TRUE(take_guard_lock(directory).ok());
}

TEST_F(JobLockTest, OfAGuardWithASupervisorTheSupervisorIsNamed) {
  const SecureDirectory directory = job();
  const auto guard = take_guard_lock(directory);
  ASSERT_TRUE(guard.ok());
  const auto lock = JobLock::take(directory, this_process_as_holder(wall_now()));
  ASSERT_TRUE(lock.ok()) << "two locks, which do not meet";
  EXPECT_TRUE(take_guard_lock(directory).error().message.starts_with("another supervisor holds "));
}

TEST_F(JobLockTest, AHolderThatWroteNonsenseIsStillAHolder) {
  const SecureDirectory directory = job();
  const auto lock = JobLock::take(directory, this_process_as_holder(wall_now()));
  ASSERT_TRUE(lock.ok());
  ASSERT_EQ(::truncate((directory_.path() + "/lock").c_str(), 3), 0);
  EXPECT_TRUE(is_locked(directory).value());
  EXPECT_EQ(JobLock::take(directory, {}).error().code, ErrorCode::kBusy);
}

TEST_F(JobLockTest, ALockFileThatOthersMayWriteToIsRefused) {
  const SecureDirectory directory = job();
  const UniqueFd fd(::openat(directory.fd(), "lock", O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_EQ(::fchmod(fd.get(), 0666), 0);
  const auto refused = JobLock::take(directory, this_process_as_holder(wall_now()));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace monarch
