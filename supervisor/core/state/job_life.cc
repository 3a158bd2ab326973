#include "supervisor/core/state/job_life.h"

#include "transport/base/assert.h"

namespace monarch {

bool may_follow(JobPhase before, JobPhase next) {
  switch (before) {
    case JobPhase::kNew: return next == JobPhase::kStarting || next == JobPhase::kStopping;
    case JobPhase::kStarting: return next == JobPhase::kRunning || next == JobPhase::kStopping;
    case JobPhase::kRunning: return next == JobPhase::kStopping;
    case JobPhase::kStopping: return next == JobPhase::kDraining;
    case JobPhase::kDraining: return next == JobPhase::kShuttingDown;
    case JobPhase::kShuttingDown: return next == JobPhase::kEnded;
    case JobPhase::kEnded: return false;
  }
  return false;
}

void to(JobCourse& job, JobPhase next) {
  MONARCH_ASSERT_BECAUSE(may_follow(job.phase, next), "a job goes through its phases in their order");
  job.phase = next;
}

}  // namespace monarch
