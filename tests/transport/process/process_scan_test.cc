#include "transport/process/process_scan.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "transport/base/clock.h"

namespace monarch {
namespace {

// A process that executes itself over and over, with one environment.
pid_t start_executing() {
  const pid_t child = ::fork();
  if (child != 0) return child;
  static const char* const kScript = "[ $1 = 0 ] || exec /bin/sh -c \"$2\" sh $(($1 - 1)) \"$2\"";
  const char* const arguments[] = {"sh", "-c", kScript, "sh", "100000", kScript, nullptr};
  const char* const environment[] = {"SCAN_TEST=here", nullptr};
  (void)::execve("/bin/sh", const_cast<char* const*>(arguments), const_cast<char* const*>(environment));
  ::_exit(127);
}

TEST(ProcessScan, KnowsWhoHasBegunToEnd) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  ASSERT_GT(child, 0);
  EXPECT_FALSE(is_ending(child));
  (void)::kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(is_ending(child)) << "it is a zombie";
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(ProcessScan, DoesNotTakeTheEndOfAFirstThreadForThatOfItsProcess) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::thread([] {
      for (;;) ::pause();
    }).detach();
    (void)::syscall(SYS_exit, 0);  // of this thread alone; pthread_exit would unwind what called this
  }
  ASSERT_GT(child, 0);
  while (!read_process(child)->dead()) pause_between_looks();
  EXPECT_FALSE(is_ending(child));
  (void)::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(ProcessScan, SeesAProcessThatExecutesAnotherProgramAtThatMoment) {
  const pid_t child = start_executing();
  ASSERT_GT(child, 0);
  const Instant end = boot_now() + Duration::milliseconds(1500);
  int looks = 0;
  int missed = 0;
  while (!environment_contains(child, {"SCAN_TEST=here"}) && boot_now() < end) {
  }
  for (; boot_now() < end; ++looks) missed += environment_contains(child, {"SCAN_TEST=here"}) ? 0 : 1;
  EXPECT_EQ(missed, 0) << "of " << looks;
  EXPECT_EQ(environment_value(child, "SCAN_TEST"), "here");
  EXPECT_EQ(environment_value(child, "OTHER"), std::nullopt);
  (void)::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace monarch
