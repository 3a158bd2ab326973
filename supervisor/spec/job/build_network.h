#pragma once

// By which addresses and ports the parts of a job reach each other: `control`, `network` and `supervisor` of a JobSpec.
// Like build.h.
//
// Thread: pure functions.

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

ControlSpec build_control(const YamlNode& root, Report& report);
NetworkSpec build_network(const YamlNode& root, Report& report);
SupervisorPlace build_supervisor_on(const YamlNode& root);

// Whether they fit the launcher and the meshes: `job` has all of these, and they are linked.
void check_network(const JobSpec& job, const YamlNode& root, Report& report);

}  // namespace monarch
