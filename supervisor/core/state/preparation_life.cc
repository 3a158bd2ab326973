#include "supervisor/core/state/preparation_life.h"

#include "transport/base/assert.h"

namespace monarch {

bool may_follow(PreparePhase before, PreparePhase next) {
  switch (before) {
    case PreparePhase::kNone: return next == PreparePhase::kNone || next == PreparePhase::kStarting;
    case PreparePhase::kStarting:
      return next == PreparePhase::kRunning || next == PreparePhase::kStopping || next == PreparePhase::kPrepared ||
             next == PreparePhase::kUnprepared || next == PreparePhase::kNone;
    case PreparePhase::kRunning:
      return next == PreparePhase::kStopping || next == PreparePhase::kPrepared || next == PreparePhase::kUnprepared ||
             next == PreparePhase::kNone;
    case PreparePhase::kStopping:
      return next == PreparePhase::kStopping || next == PreparePhase::kPrepared || next == PreparePhase::kUnprepared ||
             next == PreparePhase::kNone;
    case PreparePhase::kPrepared: return next == PreparePhase::kNone;
    case PreparePhase::kUnprepared: return next == PreparePhase::kNone;
  }
  return false;
}

void to(Preparation& preparation, PreparePhase next) {
  MONARCH_ASSERT_BECAUSE(may_follow(preparation.phase, next), "a spare is warmed once by each worker");
  preparation.phase = next;
}

}  // namespace monarch
