#pragma once

// TimeSheet: where the time of all ranks went, as the job's status said while the drill ran; ETTR and goodput follow.
//
// Thread: pure functions.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "supervisor/core/state/ledger.h"
#include "supervisor/drill/core/measure_run.h"

namespace monarch::drill {

using RankTimes = std::array<double, kTimeBins>;  // in milliseconds

// The sums up to some time; between two samples time goes on evenly.
struct TimeCut {
  WallTime at;
  std::vector<RankTimes> meshes;
  std::vector<std::optional<double>> steps;  // by gang
};

struct TimeSheet {
  std::vector<TimeCut> samples;  // in order of time
};

TimeSheet time_sheet(const Run& run);
// Nothing: there is no sample. Before the first and after the last it is what these say.
std::optional<TimeCut> cut_at(const TimeSheet& sheet, WallTime at);

// Time of one gang, from its start to when it was past where it had been.
Duration redone_within(const Run& run, const TimeSheet& sheet, std::uint32_t gang, WallTime from, WallTime to);

// The furthest step that a gang had named by then, and when it was first past that.
std::optional<double> furthest_by(const TimeSheet& sheet, std::uint32_t gang, WallTime by);
std::optional<WallTime> past_steps(const TimeSheet& sheet, std::uint32_t gang, WallTime since);

// New steps a second of all gangs but sidecars'; nothing: no gang has named one, or no time passed.
std::optional<double> steps_per_second(const Run& run, const TimeSheet& sheet, WallTime from, WallTime to);

// Fills rank_milliseconds, unaccounted, ETTR, goodput, availability, the baseline and the curve; adds the invariant of
// the ledger.
void put_ledger(const Run& run, const TimeSheet& sheet, DrillReport& report);

}  // namespace monarch::drill
