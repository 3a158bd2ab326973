// A number that was given out again: whoever has it now is never taken for the one who had it.

#include <linux/sched.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdint>
#include <optional>

#include "tests/transport/process/process_fixture.h"
#include "transport/process/process_scan.h"

namespace monarch {
namespace {

// A child that waits for its end; with a number, with this one. Nothing where the kernel does not give it.
std::optional<pid_t> innocent(pid_t wanted = 0) {
  clone_args args{};
  args.exit_signal = SIGCHLD;
  if (wanted != 0) {
    args.set_tid = reinterpret_cast<std::uintptr_t>(&wanted);
    args.set_tid_size = 1;
  }
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid < 0) return std::nullopt;
  if (pid == 0) {
    for (;;) (void)::pause();
  }
  return static_cast<pid_t>(pid);
}

void end(pid_t child) {
  ASSERT_EQ(::kill(child, SIGKILL), 0);  // ours, and not reaped
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(PidReuse, TheNewOwnerOfANumberIsNeverSignalled) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto first = innocent();
    ASSERT_TRUE(first.has_value());
    const auto known = read_process(*first);
    ASSERT_TRUE(known.has_value());
    const UniqueFd pidfd = open_process(*known);
    ASSERT_TRUE(pidfd.valid());
    // The kernel tells starts apart by its clock's ticks, ten milliseconds long.
    const Instant next_tick = boot_now() + Duration::milliseconds(20);
    while (boot_now() < next_tick) {
    }
    end(*first);
    const auto second = innocent(*first);
    if (!second && errno == EEXIST) continue;  // somebody else was faster
    if (!second) GTEST_SKIP() << "choosing a number takes root: " << errno_error("clone3", errno).message;
    ASSERT_EQ(*second, *first);
    EXPECT_FALSE(send_signal(pidfd.get(), SIGKILL));
    EXPECT_FALSE(open_process(*known).valid());
    const auto now = read_process(*second);
    EXPECT_TRUE(now.has_value() && !now->dead()) << "the innocent one was killed";
    end(*second);
    return;
  }
  GTEST_SKIP() << "no number stayed free";
}

}  // namespace
}  // namespace monarch
