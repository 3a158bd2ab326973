#pragma once

// Which processors a RankBinding means on a host of a given shape. Processors are numbered from 0 among those that may
// be used, in the order of NUMA node, package, core and thread: neighbours share as much as can be, and a rank with an
// even number of them where cores have two threads has whole cores.
//
// Memory needs no policy of its own: what a bound rank touches first is given to it on the node that it runs on.
//
// Thread: pure functions and values.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/messages/rank.h"

namespace monarch {

struct HostCpu {
  std::uint32_t number = 0;  // the kernel's
  std::uint32_t node = 0;
  std::uint32_t package = 0;
  std::uint32_t core = 0;
  bool operator==(const HostCpu&) const = default;
};

struct HostTopology {
  std::vector<HostCpu> cpus;                       // that may be used, in the kernel's order
  std::map<std::string, std::uint32_t> gpu_nodes;  // by UUID; one whose node is not known is not in it
};

// The kernel's numbers, ascending; none: it is not to be bound. kInvalid where the host has no such processors.
Result<std::vector<std::uint32_t>> bound_cpus(const RankBinding& binding, const HostTopology& host);

// "0-3,8"
std::string cpu_list(const std::vector<std::uint32_t>& cpus);
// The reverse; nothing where it is no such list.
std::optional<std::vector<std::uint32_t>> parse_cpu_list(std::string_view text);

}  // namespace monarch
