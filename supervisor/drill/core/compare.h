#pragma once

// What a run lost while faults struck it, to be held against a run that stops and starts everything: rank-seconds in
// which no step was done that had not been done before, a step taking what it took in control.
//
// Thread: a pure function.

#include <optional>

#include "supervisor/drill/core/record.h"

namespace monarch::drill {

// Nothing: its ranks named no steps in control.
std::optional<CompareRun> compare_run(const DrillRecord& record);

}  // namespace monarch::drill
