#pragma once

// checkpoints: how many copies of what ranks save are kept in the memory of other hosts, and whether the job has those
// hosts.
//
// Thread: pure functions.

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

CheckpointSpec build_checkpoints(const YamlNode& root, Report& report);

// The links between the meshes are sound.
void check_checkpoints(const JobSpec& job, const YamlNode& root, Report& report);

}  // namespace monarch
