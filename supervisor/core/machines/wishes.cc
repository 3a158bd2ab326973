#include "supervisor/core/machines/wishes.h"

#include <algorithm>
#include <set>

#include "supervisor/core/facts/reports.h"
#include "transport/base/text.h"

namespace monarch {

void Wishes::on(const OperatorAsked& event) {
  if (basis_.state.phase < JobPhase::kStarting || basis_.starts_nothing()) return;  // a stop wins over everything
  const std::string who = event.who.empty() ? "an operator" : printable(event.who);
  for (const HostId id : event.hosts) {
    if (event.wish == OperatorWish::kDrain) hosts_.drain(id, who);
    if (event.wish == OperatorWish::kUndrain) hosts_.undrain(id, who);
  }
  std::set<std::pair<MeshId, GangId>> gangs;
  for (const RankId& id : event.ranks) gangs.emplace(id.mesh, basis_.mesh(id.mesh).gang_of(id.rank));
  if (event.wish == OperatorWish::kRetry) forgive({gangs.begin(), gangs.end()}, who);
  for (const auto& [mesh, g] : gangs) {
    event.wish == OperatorWish::kRetry ? gangs_.retry(mesh, g) : gangs_.restart(mesh, g, who);
  }
  asked_ = true;
  basis_.waits_due = true;
}

// Said with what it forgives: what comes after is counted anew.
void Wishes::forgive(const std::vector<std::pair<MeshId, GangId>>& gangs, const std::string& who) {
  std::size_t failures = 0;
  for (const auto& [mesh, g] : gangs) failures += basis_.gang(mesh, g).failures.size();
  const std::string freed = hosts_.forgive();
  const std::size_t moves = basis_.state.reallocations.size();
  basis_.emit(basis_.event(
      EventKind::kFailuresForgiven, Severity::kInfo,
      text(failures, failures == 1 ? " failure" : " failures", " of ranks and ", moves,
           moves == 1 ? " replacement" : " replacements", " of hosts do not count any longer, asked by ", who, freed)));
  forgiven_ = true;
}

// Of the rank's place, over generations.
void Wishes::on(const HoldAsked& event) {
  if (basis_.state.phase == JobPhase::kEnded) return;
  for (const RankId& id : event.ranks) {
    std::vector<Rank>& held = mine_.held[id.mesh.value()];
    const auto place = std::lower_bound(held.begin(), held.end(), id.rank);
    switch (event.wish) {
      case HoldWish::kHold:
        if (!is_held(basis_, id)) held.insert(place, id.rank);
        break;
      case HoldWish::kRelease:
        if (is_held(basis_, id)) held.erase(place);
        break;
      case HoldWish::kStop:
      case HoldWish::kContinue: break;  // of its process, as Gangs has it
    }
  }
  const bool begins = event.wish == HoldWish::kHold || event.wish == HoldWish::kStop;
  const std::string who = event.who.empty() ? "an operator" : printable(event.who);
  if (begins) mine_.by = who;
  if (event.wish != HoldWish::kHold && event.wish != HoldWish::kRelease) return;
  const bool held = event.wish == HoldWish::kHold;
  JobEvent told = basis_.event(
      held ? EventKind::kRanksHeld : EventKind::kRanksReleased, Severity::kInfo,
      text(basis_.names_of(event.ranks), held ? ": not watched for hangs until released" : ": watched for hangs again",
           ", asked by ", who));
  const auto of_first = [&](const RankId& id) { return id.mesh == event.ranks.front().mesh; };
  if (!event.ranks.empty() && std::all_of(event.ranks.begin(), event.ranks.end(), of_first)) {
    told.mesh = basis_.mesh(event.ranks.front().mesh).name;
    if (event.ranks.size() == 1) told.rank = event.ranks.front().rank.value();
  }
  basis_.emit(std::move(told));
}

}  // namespace monarch
