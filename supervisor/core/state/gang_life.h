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
//   idle → waiting                             a slot that is claimed
//     all but starting, running → idle         it is let go, and nothing of it lives
//     idle → stopped                           the job ends
//
// Thread: pure functions.

#include "supervisor/core/state/job_state.h"

namespace monarch {

bool may_follow(GangPhase before, GangPhase next);

// As it is before anything was claimed or started.
GangState first_gang(bool is_idle);

void to(GangState& gang, GangPhase next);
// To idle: whoever claims it next has nothing of what was there before.
void to_rest(GangState& gang);

}  // namespace monarch
