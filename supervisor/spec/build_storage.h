#pragma once

// The folders that a job relies on, `storage`, out of a tree that was held against the schema.
//
// Thread: pure functions.

#include <vector>

#include "supervisor/core/job_spec.h"
#include "supervisor/spec/diagnostics.h"
#include "supervisor/spec/yaml.h"

namespace monarch {

std::vector<StorageSpec> build_storage(const YamlNode& root, Report& report);

}  // namespace monarch
