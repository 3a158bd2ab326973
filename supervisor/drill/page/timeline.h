#pragma once

// The timeline: a lane for the supervisor and for each host where anything was but work, coloured by the bin of the
// ledger; numbered faults above, each with a dashed line down to its lane and a bar for as long as it lasted; control
// shaded; below it new steps a second against those of control.
//
// Thread: a pure function.

#include <string>

#include "supervisor/drill/core/record.h"
#include "supervisor/drill/core/report.h"

namespace monarch::drill {

// As HTML, in both widths, with the key of its colours and the table behind it.
std::string timeline(const DrillRecord& record, const DrillReport& report);

}  // namespace monarch::drill
