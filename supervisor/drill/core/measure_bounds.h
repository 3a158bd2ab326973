#pragma once

// Bounds: what was expected, whether it was met, and by how much evidence. Some things are expected of every drill,
// whether its scenario says so or not.
//
// Thread: pure functions.

#include "supervisor/drill/core/measure_blame.h"
#include "supervisor/drill/core/measure_run.h"

namespace monarch::drill {

void put_bounds(const Run& run, const Blame& blame, DrillReport& report);
// How much may be left: what the scenario says, else nothing.
std::uint32_t allowed_leftovers(const DrillRecord& record);
// Verdict, exit code and the last line.
void put_verdict(const Run& run, DrillReport& report);

// "0.09 s", "6.1 s", "2", "0.92"
std::string amount_words(MeasureUnit unit, double value);

}  // namespace monarch::drill
