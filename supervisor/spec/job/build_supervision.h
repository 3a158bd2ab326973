#pragma once

// The supervision of a job or of one of its meshes: defaults filled in, and its times and budgets held against each
// other.
//
// Thread: pure functions.

#include <string>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// `node` may be nullptr: nothing is written. `base` gives what is left out.
Supervision build_supervision(const YamlNode* node, const Supervision& base);

// `path` is "supervision" or "meshes.trainer.supervision". Only contradictions that involve a value written in `node`
// are reported: what a mesh takes over from the job is reported there.
void check_supervision(const Supervision& supervision, const YamlNode* node, const std::string& path, Report& report);

}  // namespace monarch
