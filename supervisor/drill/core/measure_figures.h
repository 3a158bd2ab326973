#pragma once

// Figures of each fault, and their spread by class.
//
// Thread: pure functions.

#include <optional>
#include <vector>

#include "supervisor/drill/core/measure_blame.h"
#include "supervisor/drill/core/measure_ledger.h"
#include "supervisor/drill/core/measure_run.h"

namespace monarch::drill {

// Nearest rank: a value that was measured, never one between two.
Spread spread_of(std::vector<Duration> values);

// How many gangs may be started again for it: `least` where it is certain.
struct ExpectedGangs {
  std::uint32_t least = 0;
  std::uint32_t most = 0;
};
ExpectedGangs expected_gangs(const Run& run, const Blow& blow, const Fault& fault);

// The end that counts: a limit that its program never ran into is inert.
BlowEnd end_of(const Blow& blow, const BlowStory& story);
// Every gang that has to run again does. Nothing: no gang has to.
std::optional<bool> recovery_of(const Run& run, const Blow& blow, const BlowStory& story);

// Fills faults, classes, and the counts of the report.
void put_figures(const Run& run, const Blame& blame, const TimeSheet& time, DrillReport& report);

}  // namespace monarch::drill
