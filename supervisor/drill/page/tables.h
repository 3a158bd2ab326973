#pragma once

// The tables of the page, each as HTML; those of pictures stand behind them, so that no fact is in a picture alone.
//
// Thread: pure functions.

#include <string>

#include "supervisor/drill/core/record.h"
#include "supervisor/drill/core/report.h"

namespace monarch::drill {

inline constexpr std::size_t kMostRows = 200;  // of hosts, or of lines that say what is wrong

std::string expectation_table(const DrillReport& report);
std::string invariant_table(const DrillReport& report);
std::string fault_table(const DrillRecord& record, const DrillReport& report);
std::string class_table(const DrillReport& report);
std::string ledger_table(const DrillReport& report);
// Seconds of each host in each bin, and new steps a second over time: what the timeline draws.
std::string lane_table(const DrillRecord& record, const DrillReport& report);
std::string curve_table(const DrillRecord& record, const DrillReport& report);

}  // namespace monarch::drill
