#pragma once

// What a drill came to, as tables for people: what was expected, what always holds, each fault, and times by class.
//
// Thread: a pure function.

#include <string>

#include "supervisor/drill/core/record.h"
#include "supervisor/drill/core/report.h"

namespace monarch {

// `columns`: as Table takes them.
std::string drill_table(const drill::DrillRecord& record, const drill::DrillReport& report, bool colour,
                        std::size_t columns = 0);

}  // namespace monarch
