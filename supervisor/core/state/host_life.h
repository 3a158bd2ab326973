#pragma once

// HostLife: what may become of a host, from one worker to the next. Who decides says it by to(); nobody else writes a
// host's phase, but that a cold host begins with all of its state anew.
//
//   cold → launching → launched → joined
//     launching, launched, joined → ended         its worker has ended
//     launching, launched, joined → destroying    it is to end, and does not by itself
//     destroying → destroying                     it is told so again
//     destroying → ended
//     destroying → lost                           its end was not proven in time
//     lost → ended                                it was, after all
//     ended, lost → cold                          it may be launched again
//
// Thread: pure functions.

#include "supervisor/core/state/job_state.h"

namespace monarch {

bool may_follow(HostPhase before, HostPhase next);

void to(HostState& host, HostPhase next);

}  // namespace monarch
