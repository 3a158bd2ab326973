#pragma once

// Compressed lists of hosts: "node[01-20,25],gpu7" and back. A range may have a step, "node[0-14/2]". Names follow a
// strict grammar (letters, digits, `.`, `-`, `_`; the first is no dash and no dot), since they become arguments of
// other programs.
//
// Thread: pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/result.h"

namespace monarch {

// In the order of writing. Refuses duplicates and lists of more than limits::kHostlistNames.
Result<std::vector<std::string>> expand_hostlist(std::string_view list);

// The same of a list whose items may end in the number of ranks that each of their hosts is meant to have:
// "a:4,node[1-3]:2".
struct HostSlots {
  std::string name;
  std::optional<std::uint32_t> slots;
};
Result<std::vector<HostSlots>> expand_slot_list(std::string_view list);

// The shortest list of runs that expands to `names`, in their order.
std::string fold_hostlist(const std::vector<std::string>& names);

bool is_host_name(std::string_view name);

}  // namespace monarch
