#include "supervisor/core/crew/core_basis.h"

#include <algorithm>
#include <utility>

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

std::string CoreFacts::names_of(std::vector<RankId> ranks) const {
  constexpr std::size_t kMostRuns = 8;
  std::sort(ranks.begin(), ranks.end());
  std::string names;
  std::size_t runs = 0;
  for (std::size_t i = 0; i < ranks.size();) {
    if (runs++ == kMostRuns) return text(names, " and ", ranks.size() - i, " more");
    const std::size_t first = i++;
    const MeshId of = ranks[first].mesh;
    while (i < ranks.size() && ranks[i].mesh == of && ranks[i].rank.value() - ranks[i - 1].rank.value() <= 1) ++i;
    const bool same_mesh = first > 0 && ranks[first - 1].mesh == of;
    names += same_mesh ? "," : text(first > 0 ? " " : "", mesh(of).name, "/");
    names += text(ranks[first].rank.value());
    if (ranks[i - 1].rank != ranks[first].rank) names += text("-", ranks[i - 1].rank.value());
  }
  return names;
}

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
