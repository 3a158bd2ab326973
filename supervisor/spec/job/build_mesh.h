#pragma once

// One mesh of a spec: defaults filled in, and its values held against each other.
//
// Thread: pure functions.

#include <optional>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// Nothing: its shape cannot be told, and that has been reported. `job` gives the supervision and the folder.
std::optional<MeshSpec> build_mesh(const YamlKey& name, const YamlNode& node, const JobSpec& job, Report& report);

}  // namespace monarch
