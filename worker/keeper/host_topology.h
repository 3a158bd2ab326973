#pragma once

// Reads what worker/core/cpu_binding.h wants to know of this host from /sys and, for its GPUs, from the NVIDIA driver.
//
// Thread: the keeper's, once, when the first rank that is to be bound comes.

#include <cstdint>
#include <string>
#include <vector>

#include "worker/core/cpu_binding.h"

namespace monarch {

// Of `usable` on the host whose files lie below `root`. What a file does not say is 0: a host without NUMA is one node.
HostTopology read_host_topology(const std::vector<std::uint32_t>& usable, const std::string& root = "");

}  // namespace monarch
