#pragma once

// The processors of this process, by the kernel's numbers.
//
// Thread: any; they are the calling thread's.

#include <cstdint>
#include <vector>

namespace monarch {

// That it may run on; none where the kernel does not say.
std::vector<std::uint32_t> usable_cpus();

// It, and what it will fork and execute, runs on these alone. False with errno set.
bool bind_to_cpus(const std::vector<std::uint32_t>& cpus);

}  // namespace monarch
