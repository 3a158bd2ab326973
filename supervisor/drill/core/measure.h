#pragma once

// measure: the report of a record. Each event is laid to the blow that explains it, by its target: its gang, its host
// or the supervisor, from the blow until the target has recovered or is struck again; never to a blow at another one.
// Figures, bounds, invariants, verdict and exit code follow from that.
//
// Thread: a pure function.

#include <cstdint>

#include "supervisor/drill/core/record.h"
#include "supervisor/drill/core/report.h"

namespace monarch::drill {

// Faults planted into the measure. Each is a way to flatter a job, or to blame it; a test that does not notice proves
// nothing. Nobody but tests asks for one.
enum class MeasureMutant : std::uint8_t {
  kNone,
  kAnyTarget,          // an event is laid to the last blow, whoever that struck
  kFromTheLook,        // a fault begins when it was seen to be in effect
  kMeanForP95,         // p95 is the mean
  kNothingPasses,      // a bound without evidence is met
  kInertSurvives,      // what did nothing counts as seen
  kControlUnwatched,   // what happens in control counts for nothing
  kNoStill,            // time without a sign of life is in no bin
  kRedoneIsNew,        // steps done again count as new
  kBlastByRanks,       // ranks that were started again are held against gangs that were struck
  kBlameByTime,        // whatever comes soon after a blow is explained
  kRatioByWall,        // what was lost is compared by how long the runs took
  kLeftoversHere,      // what is left on other hosts is not asked for
  kSkippedForgotten,   // what never struck is no part of all
  kUndoUnasked,        // what was not taken back is not asked for
  kNeverRecovered,     // a blow explains its target's events for ever
  kSameGeneration,     // a generation may start twice
  kCommitsOfAll,       // commits of all gangs are taken for those of one
  kUnrecoveredPasses,  // a gang that never came back is no matter
  kOwnQuarantine,      // a blow explains that its host is quarantined
};
inline constexpr MeasureMutant kLastMeasureMutant = MeasureMutant::kOwnQuarantine;

DrillReport measure(const DrillRecord& record, MeasureMutant mutant = MeasureMutant::kNone);

}  // namespace monarch::drill
