#pragma once

// $(self.…), $(mesh.…) and $(env.…) in the texts of a spec: every one must name something, and that must be known when
// it is needed.
//
// Thread: pure functions.

#include <functional>
#include <string>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// The links between the meshes are sound.
void check_references(const JobSpec& job, const YamlNode& meshes, Report& report);
// What warms a spare has no rank, and its words are taken as they are.
void refuse_references_of_prepare(const YamlNode* words, Report& report);

}  // namespace monarch
