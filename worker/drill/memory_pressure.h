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

// A host's memory while our process has taken so much: host_memory(), which sees that, or what a test says.
using MemoryReading = std::function<Result<HostMemory>(std::uint64_t taken)>;

PlannedEffect plan_memory_pressure(std::uint64_t size, MemoryReading reading);

}  // namespace monarch
