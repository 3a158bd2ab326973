#pragma once

// The values of a scenario, of a tree that was held against its schema, and the faults that its keys have among each
// other.
//
// Thread: pure functions.

#include "supervisor/drill/core/scenario.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch::drill {

// Without its job and its pattern, which the reader's surroundings judge.
Scenario build_scenario(const YamlNode& root, Report& report);

}  // namespace monarch::drill
