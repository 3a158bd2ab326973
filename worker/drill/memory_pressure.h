#pragma once

// Memory pressure: a process of ours that takes memory until so many bytes are available on this host, and gives some
// back where that is less than a host needs.
//
// Thread: as Effect's.

#include <cstdint>
#include <functional>
#include <memory>

#include "transport/base/result.h"
#include "worker/drill/effect.h"

namespace monarch {

struct HostMemory {
  std::uint64_t total = 0;
  std::uint64_t available = 0;
};
Result<HostMemory> host_memory();  // of /proc/meminfo

// What there is now, where the process of ours has taken so much: what a test says, or host_memory(), which sees that.
using MemoryReading = std::function<Result<HostMemory>(std::uint64_t taken)>;

PlannedEffect plan_memory_pressure(std::uint64_t size, MemoryReading reading);

}  // namespace monarch
