#pragma once

// Invariants that can be checked from outside, by their labels in ARCHITECTURE.md, each with how often it was checked.
//
// Thread: a pure function.

#include "supervisor/drill/core/measure_blame.h"
#include "supervisor/drill/core/measure_run.h"

namespace monarch::drill {

// Leftovers that the scenario allows break none.
void put_invariants(const Run& run, const Blame& blame, std::uint32_t allowed_leftovers, DrillReport& report);

// Leftovers on hosts, each as a line.
std::vector<std::string> leftovers_of(const Run& run);

}  // namespace monarch::drill
