#pragma once

// Lanes: what each host, and the supervisor, did when, as events tell it.
//
// Thread: a pure function.

#include "supervisor/drill/core/measure_blame.h"
#include "supervisor/drill/core/measure_ledger.h"
#include "supervisor/drill/core/measure_run.h"

namespace monarch::drill {

void put_lanes(const Run& run, const Blame& blame, const TimeSheet& sheet, DrillReport& report);

}  // namespace monarch::drill
