#pragma once

// `launch` of a JobSpec: exactly one launcher with its hosts, paths of this machine made absolute. Like build.h.
//
// Thread: pure functions.

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/local_path.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

Launch build_launch(const YamlNode& root, const PathBases& bases, Report& report);
// Whether the hosts do for the meshes: `job` has all of these, and they are linked.
void check_hosts_suffice(const JobSpec& job, const YamlNode& root, Report& report);

}  // namespace monarch
