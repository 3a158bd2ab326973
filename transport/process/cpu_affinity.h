#pragma once

// The processors of a thread, by the kernel's numbers; 0 is the calling one.
//
// Thread: any.

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace monarch {

// That it may run on; none where the kernel does not say.
std::vector<std::uint32_t> usable_cpus(pid_t thread = 0);

// It, and what it will fork and execute, runs on these alone. False with errno set.
bool bind_to_cpus(const std::vector<std::uint32_t>& cpus, pid_t thread = 0);

}  // namespace monarch
