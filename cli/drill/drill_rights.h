#pragma once

// Which faults the hosts of a job that runs allow, as each says when it is asked.
//
// Thread: the command's, which has no other when this is called; it waits for the hosts.

#include <vector>

#include "cli/args/command.h"
#include "cli/job/job_argument.h"
#include "supervisor/drill/core/needs.h"
#include "transport/base/result.h"

namespace monarch {

struct JobRights {
  std::vector<drill::HostRights> hosts;  // that are connected
  drill::RanksTraced traced = drill::RanksTraced::kByTheirKeeper;
};

Result<JobRights> ask_rights(const OpenedJob& job, const Context& context);

}  // namespace monarch
