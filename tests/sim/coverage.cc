#include "tests/sim/coverage.h"

#include <string>
#include <variant>

namespace monarch::sim {

void Coverage::decided(const CoreEvent& event, const std::vector<Action>& actions) {
  if (const auto* change = std::get_if<RankChanged>(&event)) {
    if (change->evidence_at != Instant::never()) note(Seen::kEvidence);
  }
  if (std::holds_alternative<SlotsClaimed>(event)) note(Seen::kClaimed);
  if (std::holds_alternative<SlotsLetGo>(event)) note(Seen::kLetGo);
  for (const Action& action : actions) {
    const auto* emitted = std::get_if<EmitEvent>(&action);
    if (emitted == nullptr) continue;
    const std::string& told = emitted->event.message;
    if (emitted->event.kind == EventKind::kGangCaughtUp) note(Seen::kForgiven);
    if (emitted->event.kind != EventKind::kGangFailed) continue;
    if (told.find("[crash 3 in a row at step ") != std::string::npos) note(Seen::kThirdCrash);
    if (told.find("its error came first") != std::string::npos) note(Seen::kErrorFirst);
  }
}

}  // namespace monarch::sim
