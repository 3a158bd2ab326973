#include "supervisor/core/state/gang_life.h"

#include <utility>

#include "transport/base/assert.h"

namespace monarch {

bool may_follow(GangPhase before, GangPhase next) {
  switch (before) {
    case GangPhase::kWaiting:
      return next == GangPhase::kReserving || next == GangPhase::kParked || next == GangPhase::kStopped ||
             next == GangPhase::kFailed || next == GangPhase::kIdle;
    case GangPhase::kReserving:
      return next == GangPhase::kWaiting || next == GangPhase::kStarting || next == GangPhase::kFailing ||
             next == GangPhase::kFailed || next == GangPhase::kParked || next == GangPhase::kStopped ||
             next == GangPhase::kIdle;
    case GangPhase::kStarting:
      return next == GangPhase::kRunning || next == GangPhase::kFailing || next == GangPhase::kStopping;
    case GangPhase::kRunning:
      return next == GangPhase::kDone || next == GangPhase::kFailing || next == GangPhase::kFailed ||
             next == GangPhase::kStopping;
    case GangPhase::kFailing:
      return next == GangPhase::kWaiting || next == GangPhase::kFailed || next == GangPhase::kIdle;
    case GangPhase::kStopping:
      return next == GangPhase::kWaiting || next == GangPhase::kStopped || next == GangPhase::kIdle;
    case GangPhase::kDone: return next == GangPhase::kIdle;
    case GangPhase::kFailed: return next == GangPhase::kWaiting || next == GangPhase::kIdle;
    case GangPhase::kStopped: return false;
    case GangPhase::kParked: return next == GangPhase::kWaiting || next == GangPhase::kStopped;
    case GangPhase::kIdle: return next == GangPhase::kWaiting || next == GangPhase::kStopped;
  }
  return false;
}

GangState first_gang(bool is_idle) { return {.phase = is_idle ? GangPhase::kIdle : GangPhase::kWaiting}; }

void to_rest(GangState& gang) {
  to(gang, GangPhase::kIdle);
  GangState fresh = first_gang(true);
  fresh.fenced_by = std::move(gang.fenced_by);
  fresh.time = gang.time;
  gang = std::move(fresh);
}

void to(GangState& gang, GangPhase next) {
  MONARCH_ASSERT_BECAUSE(may_follow(gang.phase, next), "a gang has one life at a time, from its wait to its end");
  gang.phase = next;
}

}  // namespace monarch
