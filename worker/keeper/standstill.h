#pragma once

// StandstillWatch: whether a rank's process stands still though nobody here wanted it: stopped by a signal, held by a
// debugger, frozen with its cgroup, or in one uninterruptible wait for long. The kernel announces stops; the rest is
// looked for once a second. It looks at the process that was executed and at none below it, and it never waits: /proc
// is no disk.
//
// Thread: the keeper's. Lifetime: a value; the processes are the caller's and not reaped before they are forgotten.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/base/time.h"
#include "transport/messages/rank.h"

namespace monarch {

// What proc_pid_status(5) says of a process.
struct ProcessStanding {
  char state = '?';
  pid_t tracer = 0;
  std::uint64_t switches = 0;  // of its context: a wait that goes on leaves them as they are
};
std::optional<ProcessStanding> parse_standing(std::string_view status);

class StandstillWatch {
 public:
  // `frozen` is what its cgroup says; `tracer_is_ours`: it is a dump that this keeper takes.
  Standstill judge(const ProcessStanding& standing, bool frozen, bool tracer_is_ours, Instant now);

 private:
  std::optional<Instant> waits_since_;  // uninterruptibly
  std::uint64_t switches_ = 0;
};

// Of a live process; nothing once it has ended.
std::optional<ProcessStanding> read_standing(pid_t pid);

}  // namespace monarch
