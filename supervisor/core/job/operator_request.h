#pragma once

// What an operator asks of a job's recovery, held against the job as it is: the event that it becomes, and what follows
// from it in words; or why it cannot be done. Deciding what follows is the core's (machines/wishes.h).
//
// Thread: pure functions.

#include <string>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/state/events.h"
#include "transport/base/result.h"
#include "transport/messages/viewer.h"

namespace monarch {

struct OperatorPlan {
  OperatorAsked event;
  std::string words;  // "2 gangs are stopped and started again"
};

// kInvalid: the words are for people. Budgets are taken as they stand at `now`.
Result<OperatorPlan> operator_plan(const JobCore& core, const OperatorRequest& request, Instant now);

}  // namespace monarch
