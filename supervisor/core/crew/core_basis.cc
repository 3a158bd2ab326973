#include "supervisor/core/crew/core_basis.h"

#include "supervisor/core/health/fair_deadline.h"
#include "transport/base/limits.h"

namespace monarch {

JobEvent CoreBasis::event(EventKind kind, Severity severity, std::string message) const {
  JobEvent event;
  event.kind = kind;
  event.severity = severity;
  event.message = std::move(message);
  return event;
}

void CoreBasis::emit(JobEvent event) const {
  event.number = next_event++;
  actions.emplace_back(EmitEvent{std::move(event)});
}

CrewStop CoreBasis::stop_beside(std::int32_t signal) const {
  return {.signal = signal,
          .grace = state.kill_ordered ? Duration::zero() : kCrewGrace,
          .deadline = now + kCrewGrace + limits::kKillDeadline + kStopMargin,
          .again = state.kill_ordered};
}

std::string CoreBasis::late_since(Duration before) const { return late_words(state.late - before); }

}  // namespace monarch
