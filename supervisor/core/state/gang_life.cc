#include "supervisor/core/state/gang_life.h"

#include "transport/base/assert.h"

namespace monarch {

bool may_follow(GangPhase before, GangPhase next) {
  switch (before) {
    case GangPhase::kWaiting:
      return next == GangPhase::kReserving || next == GangPhase::kParked || next == GangPhase::kStopped ||
             next == GangPhase::kFailed;
    case GangPhase::kReserving:
      return next == GangPhase::kWaiting || next == GangPhase::kStarting || next == GangPhase::kFailing ||
             next == GangPhase::kFailed || next == GangPhase::kParked || next == GangPhase::kStopped;
    case GangPhase::kStarting:
      return next == GangPhase::kRunning || next == GangPhase::kFailing || next == GangPhase::kStopping;
    case GangPhase::kRunning:
      return next == GangPhase::kDone || next == GangPhase::kFailing || next == GangPhase::kFailed ||
             next == GangPhase::kStopping;
    case GangPhase::kFailing: return next == GangPhase::kWaiting || next == GangPhase::kFailed;
    case GangPhase::kStopping: return next == GangPhase::kWaiting || next == GangPhase::kStopped;
    case GangPhase::kDone: return false;
    case GangPhase::kFailed: return next == GangPhase::kWaiting;
    case GangPhase::kStopped: return false;
    case GangPhase::kParked: return next == GangPhase::kWaiting || next == GangPhase::kStopped;
  }
  return false;
}

void to(GangState& gang, GangPhase next) {
  MONARCH_ASSERT_BECAUSE(may_follow(gang.phase, next), "a gang has one life at a time, from its wait to its end");
  gang.phase = next;
}

}  // namespace monarch
