#pragma once

// What was seen of hosts as a table's cells and as JSON, and equal findings of several hosts as one.
//
// Thread: pure functions.

#include <string>
#include <vector>

#include "supervisor/doctor/host_seen.h"
#include "transport/base/json.h"

namespace monarch::doctor {

struct HostCell {
  std::string words;  // empty: not known
  Health health = Health::kFine;
};

std::vector<std::string> host_titles();
// A row for each host; a cell has the worst health of the findings that concern it.
std::vector<std::vector<HostCell>> host_rows(const std::vector<HostSeen>& hosts, const HostFindings& findings);

// "h1, h2" in `host` where the same is said of both.
HostFindings folded(const HostFindings& findings);

// {"type":"host", …}, and {"type":"finding","host":…}.
Json host_json(const HostSeen& host, const HostFindings& findings);
Json host_finding_json(const HostFinding& finding);

}  // namespace monarch::doctor
