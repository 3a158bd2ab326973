#pragma once

// The page of a drill: one HTML file that loads nothing, has no script, reads without styles, and is well-formed XML
// whatever bytes ranks or hosts have said.
//
// Thread: a pure function.

#include <string>

#include "supervisor/drill/core/record.h"
#include "supervisor/drill/core/report.h"

namespace monarch::drill {

std::string drill_page(const DrillRecord& record, const DrillReport& report);

}  // namespace monarch::drill
