#pragma once

// host_findings(): what is wrong with the hosts of a pool, by what was seen of them. Of a host that is well it says
// nothing.
//
// Thread: pure functions.

#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/doctor/host_seen.h"

namespace monarch::doctor {

// By the pool's order; each host's own first, then those that differ from the others (odd_hosts.h).
HostFindings host_findings(const std::vector<HostSeen>& hosts, const JobSpec& spec);

// Of one host by itself.
Findings findings_of(const HostSeen& host);
// What the meshes that may come to this host of the pool need, and it does not have; empty: it has all.
std::string lacking_of(const JobSpec& spec, std::size_t host, const HostInventory& inventory);

}  // namespace monarch::doctor
