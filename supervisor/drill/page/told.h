#pragma once

// What the job said of each fault, and what is nobody's: lines as they were said, cut where they are long or many.
//
// Thread: pure functions.

#include <string>

#include "supervisor/drill/core/record.h"
#include "supervisor/drill/core/report.h"

namespace monarch::drill {

inline constexpr std::size_t kMostTold = 24;     // lines of one fault
inline constexpr std::size_t kMostBytes = 2400;  // of them

// One <details> for each fault that struck.
std::string what_the_job_said(const DrillRecord& record, const DrillReport& report);
// Blame that no fault explains, what was left behind, what was not asked for; empty: there is none.
std::string what_is_nobodys(const DrillRecord& record, const DrillReport& report);

}  // namespace monarch::drill
