#pragma once

// CrewLife: what may become of a crew. Who decides says it by to(); nobody else writes its phase.
//
//   waiting → reserving → starting → running → stopping → over → reserving
//     reserving → stopping         what its hosts hold is let go
//     starting → stopping, over
//     running → over               its members ended, or became others'
//     stopping → stopping          said again, to kill
//     all → waiting                nothing of it is awaited any more
//
// Thread: pure functions.

#include "supervisor/core/state/crew.h"

namespace monarch {

bool may_follow(CrewPhase before, CrewPhase next);

void to(Crew& crew, CrewPhase next);

}  // namespace monarch
