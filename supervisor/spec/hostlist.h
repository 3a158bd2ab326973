#pragma once

// Compressed lists of hosts: "node[01-20,25],gpu7" and back. Names follow a strict grammar (letters, digits, `.`, `-`, `_`;
// the first is no dash and no dot), since they become arguments of other programs.
//
// Thread: pure functions.

#include <string>
#include <string_view>
#include <vector>

#include "transport/base/result.h"

namespace monarch {

// In the order of writing. Refuses duplicates and lists of more than limits::kHostlistNames.
Result<std::vector<std::string>> expand_hostlist(std::string_view list);

// The shortest list of runs that expands to `names`, in their order.
std::string fold_hostlist(const std::vector<std::string>& names);

bool is_host_name(std::string_view name);

}  // namespace monarch
