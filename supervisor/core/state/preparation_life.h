#pragma once

// PreparationLife: how far a spare is warmed, from one worker to the next. Who decides says it by to(); nobody else
// writes its phase.
//
//   none → starting → running → prepared, unprepared
//     starting, running → stopping → unprepared
//     starting → prepared, unprepared   its end is heard first
//     stopping → stopping               said again, to kill; stopping → prepared: it had ended well
//     all → none                        its host has ended, or is given up
//
// Thread: pure functions.

#include "supervisor/core/state/job_state.h"

namespace monarch {

bool may_follow(PreparePhase before, PreparePhase next);

void to(Preparation& preparation, PreparePhase next);

}  // namespace monarch
