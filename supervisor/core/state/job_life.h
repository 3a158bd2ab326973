#pragma once

// JobLife: what may become of a job, once each. Who decides says it by to(); nobody else writes its phase.
//
//   new → starting → running → stopping → draining → shutting down → ended
//     new, starting → stopping   it fails, or is told to end, before all of it was ready
//
// Thread: pure functions.

#include "supervisor/core/state/job_state.h"

namespace monarch {

bool may_follow(JobPhase before, JobPhase next);

void to(JobCourse& job, JobPhase next);

}  // namespace monarch
