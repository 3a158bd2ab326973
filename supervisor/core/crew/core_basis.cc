#include "supervisor/core/crew/core_basis.h"

#include "supervisor/core/health/fair_deadline.h"

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

std::string CoreBasis::late_since(Duration before) const { return late_words(state.late - before); }

}  // namespace monarch
