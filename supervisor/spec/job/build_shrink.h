#pragma once

// `supervision.shrink` of each mesh: which of the meshes shrink, and whether they can.
//
// Thread: pure functions.

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// Fills in the `shrink` of the meshes that were built. What is written at the top level is meant for the meshes whose
// gangs are those of its dimension, and there must be one.
void build_shrink(JobSpec& job, const YamlNode& root, Report& report);

}  // namespace monarch
