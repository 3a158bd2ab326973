// Checkpoints: what ranks say that they have written, and what the supervisor answers. The keeper only carries it.

#include "worker/core/keeper_core.h"

namespace monarch {

void KeeperCore::on(const keeper_event::Committing& event, Instant /*now*/, KeeperActions& actions) {
  if (IncarnationState* incarnation = find(event.key)) incarnation->commits(event, actions);
}

void KeeperCore::on(const CommitAnswer& answer, Instant /*now*/, KeeperActions& actions) {
  if (IncarnationState* incarnation = find(answer.process)) incarnation->commit_answered(answer, actions);
}

}  // namespace monarch
