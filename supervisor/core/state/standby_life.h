#pragma once

// StandbyLife: what may become of a standby gang. Who decides says it by to(); nobody else writes its phase.
//
//   waiting → reserving → starting → at gate → given → waiting
//     reserving, starting, at gate, given → stopping → waiting
//     stopping → stopping   said again, to kill
//
// Thread: pure functions.

#include "supervisor/core/state/job_state.h"

namespace monarch {

bool may_follow(StandbyPhase before, StandbyPhase next);

void to(StandbyState& standby, StandbyPhase next);

}  // namespace monarch
