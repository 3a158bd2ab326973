#pragma once

// What a mesh needs of its hosts: ports, the port that tells when it is ready, GPUs and cores.
//
// Thread: pure functions.

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// Fills in ports, ready and resources of `mesh`, whose name and shape are known.
void build_needs(const YamlNode& node, MeshSpec& mesh, Report& report);

// A port that is written as a number belongs to one rank of a machine.
void check_fixed_ports(const JobSpec& job, const YamlNode& meshes, Report& report);

}  // namespace monarch
