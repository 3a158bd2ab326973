// Standby ranks: processes that have been started, and wait at their gate for the place of a rank.

#include "worker/core/keeper_core.h"

namespace monarch {

void KeeperCore::on(const keeper_event::AtGate& event, Instant /*now*/, KeeperActions& actions) {
  if (IncarnationState* incarnation = find(event.key)) incarnation->at_gate(actions);
}

// The process keeps its number and changes its name: as the standby it is gone without an end, for it has none. It is
// told of its place by the gate of the rank that it has become, so not before the first lease of that (I1).
bool KeeperCore::take_over(const Incarnation& standby, const keeper_action::ForkRank& as, Instant now,
                           KeeperActions& actions) {
  const auto waiting = incarnations_.find(standby);
  if (waiting == incarnations_.end() || !waiting->second.waits_for_place()) return false;
  const IncarnationState taken = waiting->second;
  incarnations_.erase(waiting);
  actions.emplace_back(keeper_action::TakeOver{standby, as});
  actions.emplace_back(keeper_action::Pipes{as.key});
  find(as.key)->take_over(taken, now, actions);
  return true;
}

}  // namespace monarch
