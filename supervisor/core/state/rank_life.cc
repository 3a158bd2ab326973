#include "supervisor/core/state/rank_life.h"

#include "transport/base/assert.h"

namespace monarch {

bool may_follow(RankStage before, RankStage next) {
  switch (before) {
    case RankStage::kPending: return next == RankStage::kStarting;
    case RankStage::kStarting:
      return next == RankStage::kRunning || next == RankStage::kStopping || next == RankStage::kEnded ||
             next == RankStage::kLost;
    case RankStage::kRunning:
      return next == RankStage::kStopping || next == RankStage::kEnded || next == RankStage::kLost;
    case RankStage::kStopping:
      return next == RankStage::kStopping || next == RankStage::kEnded || next == RankStage::kLost;
    case RankStage::kEnded: return false;
    case RankStage::kLost: return next == RankStage::kEnded;
  }
  return false;
}

void to(CrewMember& member, RankStage next) {
  MONARCH_ASSERT_BECAUSE(may_follow(member.stage, next),
                         "a rank has one process at a time, and what has ended has ended");
  member.stage = next;
}

}  // namespace monarch
