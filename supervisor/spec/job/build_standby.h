#pragma once

// standby of meshes: whether gangs without a place can wait as the spec asks for.
//
// Thread: pure functions.

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// The links between the meshes are sound.
void check_standby(const JobSpec& job, const YamlNode& meshes, Report& report);

}  // namespace monarch
