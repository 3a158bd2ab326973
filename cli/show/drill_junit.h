#pragma once

// A drill as JUnit XML for CI systems: a case for each expectation, each invariant and each fault. A fault that came to
// nothing, or never struck, is skipped, with the reason; so is an invariant that nothing was found to check.
//
// Thread: a pure function.

#include <string>

#include "supervisor/drill/core/record.h"
#include "supervisor/drill/core/report.h"

namespace monarch {

std::string drill_junit(const drill::DrillRecord& record, const drill::DrillReport& report);

}  // namespace monarch
