#include "transport/process/processor_times.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <vector>

#include "transport/base/clock.h"

namespace monarch {
namespace {

// Children that spin, all on one processor.
class Spinners {
 public:
  explicit Spinners(int count) {
    cpu_set_t usable{};
    EXPECT_EQ(::sched_getaffinity(0, sizeof usable, &usable), 0);
    cpu_set_t one{};
    for (std::size_t cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
      if (CPU_ISSET(cpu, &usable)) CPU_SET(cpu, &one);
    }
    for (int i = 0; i < count; ++i) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        (void)::sched_setaffinity(0, sizeof one, &one);
        for (std::atomic<int> turn{0};;) ++turn;
      }
      pids_.push_back(pid);
    }
  }
  Spinners(const Spinners&) = delete;
  Spinners& operator=(const Spinners&) = delete;
  ~Spinners() {
    for (const pid_t pid : pids_) {
      (void)::kill(pid, SIGKILL);
      (void)::waitpid(pid, nullptr, 0);
    }
  }
  const std::vector<pid_t>& pids() const { return pids_; }

 private:
  std::vector<pid_t> pids_;
};

TEST(ProcessorTimes, TellRunningFromWaiting) {
  const Spinners spinners(3);
  const Instant until = boot_now() + Duration::seconds(30);
  const pid_t one = spinners.pids().front();
  std::optional<ProcessorTimes> times;
  do times = processor_times(one);
  while (times && (times->ran < Duration::milliseconds(30) || times->waited < times->ran) && boot_now() < until);
  ASSERT_TRUE(times.has_value());
  EXPECT_GE(times->ran, Duration::milliseconds(30));
  EXPECT_GE(times->waited, times->ran) << "two others have as much of the processor";
}

TEST(ProcessorTimes, AreNothingOfAProcessThatIsNone) { EXPECT_FALSE(processor_times(0x7ffffffe).has_value()); }

}  // namespace
}  // namespace monarch
