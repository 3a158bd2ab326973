#pragma once

// The folders that a job relies on, `storage`, out of a tree that was held against the schema.
//
// Thread: pure functions.

#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

std::vector<StorageSpec> build_storage(const YamlNode& root, Report& report);

}  // namespace monarch
