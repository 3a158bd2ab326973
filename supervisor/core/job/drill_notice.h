#pragma once

// What `monarch drill` tells of itself, held against the job as it is: the event that it becomes, and the answer in
// words; or why it is refused. What follows from it is the core's (accounts/drills.h).
//
// Thread: pure functions.

#include <string>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/state/events.h"
#include "transport/base/result.h"
#include "transport/messages/viewer.h"

namespace monarch {

struct DrillPlan {
  DrillNoted event;
  std::string words;
};

// kInvalid: the words are for people.
Result<DrillPlan> drill_plan(const JobCore& core, const DrillNotice& notice, Instant now);

}  // namespace monarch
