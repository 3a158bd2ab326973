#pragma once

// `hang` of a supervision: what is done about ranks that make no progress, and how long each phase may last.
//
// Thread: pure functions.

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// `node` may be nullptr: nothing is written. `base` gives what is left out.
HangPolicy build_hang(const YamlNode* node, const HangPolicy& base);

}  // namespace monarch
