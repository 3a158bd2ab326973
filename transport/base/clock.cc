#include "transport/base/clock.h"

#include <ctime>

namespace monarch {

namespace {

std::int64_t read_clock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

Instant boot_now() { return Instant::since_boot(Duration::nanoseconds(read_clock(CLOCK_BOOTTIME))); }

WallTime wall_now() { return WallTime{read_clock(CLOCK_REALTIME)}; }

}  // namespace monarch
