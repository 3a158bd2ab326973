#pragma once

// odd_hosts(): those of a pool that differ from most of the others in what hosts of one job usually share: a slower,
// smaller or otherwise set host holds up all. With fewer than three hosts nobody can say which is the odd one.
//
// Thread: pure functions.

#include <vector>

#include "supervisor/doctor/host_seen.h"

namespace monarch::doctor {

HostFindings odd_hosts(const std::vector<HostSeen>& hosts);

}  // namespace monarch::doctor
