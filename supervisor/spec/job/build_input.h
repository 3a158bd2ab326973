#pragma once

// stdin: which ranks get what `run` reads from its standard input.
//
// Thread: pure functions.

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// All meshes are built. `node`: none, a RANK, all, or MESH/RANK and MESH/all.
void build_input(const YamlNode& node, JobSpec& job, Report& report);

}  // namespace monarch
