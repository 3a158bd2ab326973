#pragma once

// Makes the JobSpec out of a tree that was held against the schema: fills in defaults, and checks what concerns more
// than one value (arithmetic, names that must exist, exactly one of several). Every error prints a value that would
// work.
//
// Thread: pure functions.

#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/local_path.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// The result is complete only if nothing was reported.
JobSpec build_job(const YamlNode& root, const PathBases& bases, Report& report);

// What a default promises and this build does not do yet, and what is written and has no use; one sentence each, said
// once by `run` and `plan`.
std::vector<std::string> notes_about(const JobSpec& job);

}  // namespace monarch
