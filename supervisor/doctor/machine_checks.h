#pragma once

// What the machine itself offers to a job: groups, limits, clocks, processors, memory that is shared.
//
// Thread: any.

#include <sys/resource.h>

#include "supervisor/doctor/finding.h"

namespace monarch::doctor {

Findings check_containment();
Findings check_tracing(const Places& places);
// Of this process: soft and hard.
struct Limits {
  rlimit files{};
  rlimit locked{};
  rlimit core{};
};
Limits limits_of_this_process();
Findings check_limits(const Limits& limits, bool has_rdma);
Findings check_loopback();
Findings check_shared_memory(const Places& places);
Findings check_clock(const Places& places);
Findings check_processors(const Places& places);

}  // namespace monarch::doctor
