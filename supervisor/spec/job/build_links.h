#pragma once

// What the meshes of a job say of each other: whose hosts they share, whom they wait for, and what their texts refer
// to.
//
// Thread: pure functions.

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// Every mesh was built, in the order of `meshes`. Fills in like and depends_on; true: they hold together, so that the
// job can be placed.
bool build_links(JobSpec& job, const YamlNode& meshes, Report& report);

}  // namespace monarch
