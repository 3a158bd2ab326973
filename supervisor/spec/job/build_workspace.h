#pragma once

// Builds `workspace` of a checked tree.
//
// Thread: pure functions.

#include <optional>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/local_path.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// Nothing: none is written, or it is wrong and was reported. Whether the folder is there is not looked at here.
std::optional<WorkspaceSpec> build_workspace(const YamlNode& root, const PathBases& bases, Report& report);

}  // namespace monarch
