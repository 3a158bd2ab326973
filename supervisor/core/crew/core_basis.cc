#include "supervisor/core/crew/core_basis.h"

#include "supervisor/core/health/fair_deadline.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

JobEvent CoreFacts::event(EventKind kind, Severity severity, std::string message) const {
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

std::string CoreFacts::late_since(Duration before) const { return late_words(state.late - before); }

std::string CoreFacts::name_of(RankId id) const { return text(mesh(id.mesh).name, "/", id.rank.value()); }

void CoreBasis::say_of_gang(MeshId id, GangId g, EventKind kind, Severity severity, const std::string& what,
                            const EventDetails& more) const {
  JobEvent said = event(kind, severity, text(mesh(id).name, ": gang ", g.value(), " ", what));
  said.mesh = mesh(id).name;
  said.generation = crew(id, g).generation.counter;
  said.details = {{"gang", text(g.value())}};
  said.details.insert(said.details.end(), more.begin(), more.end());
  emit(std::move(said));
}

}  // namespace monarch
