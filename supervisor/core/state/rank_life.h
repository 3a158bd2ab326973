#pragma once

// RankLife: what may become of a rank's process, also of a crew's member. Who decides says it by to(); nobody else
// writes a stage, but that a rank that waits, or is to start, begins with all of its state anew.
//
//   pending → starting → running → stopping → ended
//     starting, running → ended            by itself
//     starting, running, stopping → lost   its host is lost; or it has become a rank of a gang
//     stopping → stopping                  said again
//     lost → ended                         of a standby that became a rank: its last words are on their way
//
// Thread: pure functions.

#include "supervisor/core/state/job_state.h"

namespace monarch {

bool may_follow(RankStage before, RankStage next);

void to(CrewMember& member, RankStage next);

}  // namespace monarch
