#pragma once

// What a run lost while faults struck it, to be held against a run that stops and starts everything: rank-seconds in
// which no step was done that had not been done before, by the ledgers of all its jobs, and those between two jobs.
//
// Thread: a pure function.

#include <optional>

#include "supervisor/drill/core/record.h"

namespace monarch::drill {

// Nothing: its ranks have named no steps.
std::optional<CompareRun> compare_run(const DrillRecord& record);

}  // namespace monarch::drill
