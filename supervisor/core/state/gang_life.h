#pragma once

// GangLife: what may become of a gang. Who decides says it by to(); nobody else writes a gang's phase.
//
//   waiting → reserving → starting → running → done
//     reserving → waiting                      a host of it is given up, or its place is not free yet
//     waiting, reserving → parked → waiting    the others go on without it
//     starting, running → failing → waiting    a rank failed; all have ended, and it is started again
//     failing → failed                         or not
//     starting, running → stopping → stopped   it is told to end
//     stopping → waiting                       so that it is started again
//     waiting, reserving, parked → stopped     no process was started
//     reserving → failing                      what it needs did not come in time
//     waiting, reserving → failed              a sidecar that is given up
//     running → failed                         an end that was foreseen
//     failed → waiting                         asked for by an operator
//
// Thread: pure functions.

#include "supervisor/core/state/job_state.h"

namespace monarch {

bool may_follow(GangPhase before, GangPhase next);

void to(GangState& gang, GangPhase next);

}  // namespace monarch
