#pragma once

// How a command reaches the hosts of a job that runs: by which marks it knows the processes of the job, and how its
// hosts are called by now.
//
// Thread: the command's; it waits for files.

#include <vector>

#include "cli/drill/drill_orders.h"
#include "supervisor/client/job_view.h"
#include "supervisor/core/spec/placement.h"
#include "transport/base/result.h"

namespace monarch {

struct ReachedJob {
  DrilledJob job;
  std::vector<PoolHost> pool;
};

Result<ReachedJob> reached_job(const JobView& view, const JobSpec& spec);

}  // namespace monarch
