#pragma once

// release_allocation(): the last act of a worker in a step of Slurm's that has ended because no supervisor was heard
// of; see abandoned_allocation.h. It asks Slurm now and then, for half an hour at most, and the step lives as long.
//
// Thread: the keeper's, once it has run.

#include <string>

#include "worker/core/environment.h"

namespace monarch {

struct ReleaseOptions {
  std::string job_id;
  std::string job_uuid;
  Environment environment;  // with SLURM_JOB_ID and SLURMD_NODENAME, where this is a step
};
void release_allocation(const ReleaseOptions& options);

}  // namespace monarch
