#pragma once

// The smaller pictures of the page, each in both widths with the table behind it: the ledger as a bar, times by class
// as dots (as histograms where there are many), the comparison.
//
// Thread: pure functions.

#include <string>

#include "supervisor/drill/core/record.h"
#include "supervisor/drill/core/report.h"

namespace monarch::drill {

inline constexpr std::size_t kManyDots = 50;  // of one class: from there on they are a histogram

std::string ledger_picture(const DrillReport& report);
std::string time_pictures(const DrillReport& report);
// Empty where nothing was compared.
std::string comparison(const DrillRecord& record, const DrillReport& report);

}  // namespace monarch::drill
