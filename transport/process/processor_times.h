#pragma once

// The kernel's account of a thread: how long it has run, and how long it could have and waited for a processor
// (sched-stats of Linux's documentation).
//
// Thread: any.

#include <sys/types.h>

#include <optional>

#include "transport/base/time.h"

namespace monarch {

struct ProcessorTimes {
  Duration ran;
  Duration waited;
};

// Of a process its main thread. Nothing: it has ended, or this kernel keeps no account.
std::optional<ProcessorTimes> processor_times(pid_t thread);

}  // namespace monarch
