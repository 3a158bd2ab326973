#include "supervisor/core/state/crew_life.h"

#include "transport/base/assert.h"

namespace monarch {

bool may_follow(CrewPhase before, CrewPhase next) {
  if (next == CrewPhase::kWaiting) return true;
  switch (before) {
    case CrewPhase::kWaiting: return next == CrewPhase::kReserving;
    case CrewPhase::kReserving: return next == CrewPhase::kStarting || next == CrewPhase::kStopping;
    case CrewPhase::kStarting:
      return next == CrewPhase::kRunning || next == CrewPhase::kStopping || next == CrewPhase::kOver;
    case CrewPhase::kRunning: return next == CrewPhase::kStopping || next == CrewPhase::kOver;
    case CrewPhase::kStopping: return next == CrewPhase::kStopping || next == CrewPhase::kOver;
    case CrewPhase::kOver: return next == CrewPhase::kReserving;
  }
  return false;
}

void to(Crew& crew, CrewPhase next) {
  MONARCH_ASSERT_BECAUSE(may_follow(crew.phase, next), "a crew has one life at a time, from its wait to its end");
  crew.phase = next;
}

}  // namespace monarch
