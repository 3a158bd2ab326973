#include "supervisor/core/state/standby_life.h"

#include "transport/base/assert.h"

namespace monarch {

bool may_follow(StandbyPhase before, StandbyPhase next) {
  switch (before) {
    case StandbyPhase::kWaiting: return next == StandbyPhase::kReserving;
    case StandbyPhase::kReserving: return next == StandbyPhase::kStarting || next == StandbyPhase::kStopping;
    case StandbyPhase::kStarting: return next == StandbyPhase::kAtGate || next == StandbyPhase::kStopping;
    case StandbyPhase::kAtGate: return next == StandbyPhase::kGiven || next == StandbyPhase::kStopping;
    case StandbyPhase::kGiven: return next == StandbyPhase::kWaiting || next == StandbyPhase::kStopping;
    case StandbyPhase::kStopping: return next == StandbyPhase::kStopping || next == StandbyPhase::kWaiting;
  }
  return false;
}

void to(StandbyState& standby, StandbyPhase next) {
  MONARCH_ASSERT_BECAUSE(may_follow(standby.phase, next),
                         "a standby gang has one life at a time, from its wait to its end");
  standby.phase = next;
}

}  // namespace monarch
