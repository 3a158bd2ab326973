// What is noted for people, and for the programs of ranks; nothing is started or stopped by it.

#include <algorithm>

#include "supervisor/core/job/job_core.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kMostRuns = 8;

// "trainer/0-3,7", and of several meshes each
std::string names_of(std::vector<RankId> ranks, const JobSpec& spec) {
  std::sort(ranks.begin(), ranks.end());
  std::string names;
  std::size_t runs = 0;
  for (std::size_t i = 0; i < ranks.size();) {
    if (runs++ == kMostRuns) return text(names, " and ", ranks.size() - i, " more");
    const std::size_t first = i++;
    const MeshId mesh = ranks[first].mesh;
    while (i < ranks.size() && ranks[i].mesh == mesh && ranks[i].rank.value() - ranks[i - 1].rank.value() <= 1) ++i;
    const bool same_mesh = first > 0 && ranks[first - 1].mesh == mesh;
    names += same_mesh ? "," : text(first > 0 ? " " : "", spec.meshes[mesh.value()].name, "/");
    names += text(ranks[first].rank.value());
    if (ranks[i - 1].rank != ranks[first].rank) names += text("-", ranks[i - 1].rank.value());
  }
  return names;
}

}  // namespace

void JobCore::on(const PeopleTold& event) {
  if (state_.phase != JobPhase::kEnded) emit(event.event);
}

void JobCore::on(const HostsHeld& event) {
  emit(event_of(EventKind::kHostsHeld, Severity::kWarning,
                text(event.silent, " of ", event.of,
                     " hosts fell silent together: the supervisor's own network, or a "
                     "switch, is suspected, and none of them is given up within ",
                     to_text(event.until - now_))));
}

void JobCore::on(const RankHung& event) {
  const GangId g = mesh_spec(event.process.rank.mesh).gang_of(event.process.rank.rank);
  GangState& state = gang(event.process.rank.mesh, g);
  if (basis_.crew_with(event.process.rank).generation != event.process.generation)
    return;  // it is told of one that has ended
  const bool alive = runs(state.phase);
  if (!alive) return;  // it is being stopped for another reason
  const MeshSpec& spec = mesh_spec(event.process.rank.mesh);
  const bool restart = event.action == HangAction::kRestart && !state_.foreseen;
  const char* what = restart ? "[hang.action: restart: its gang is stopped]"
                     : spec.supervision.hang.action == HangAction::kRestart
                         ? "[hang.action: restart; the limit is not written: reported only]"
                         : "[hang.action: report: nothing is stopped]";
  JobEvent hung = event_of(EventKind::kRankHung, restart ? Severity::kError : Severity::kWarning,
                           text(spec.name, "/", event.process.rank.rank.value(), " on ", pool_[event.host.value()].name,
                                ": ", printable(event.why), " ", what));
  hung.host = pool_[event.host.value()].name;
  hung.mesh = spec.name;
  hung.rank = event.process.rank.rank.value();
  hung.generation = event.process.generation.counter;
  hung.pid = basis_.member(event.process.rank).pid;
  if (!event.phase.empty()) hung.details.emplace_back("phase", printable(event.phase));
  hung.details.emplace_back("waited", to_text(event.waited));
  hung.details.emplace_back("limit", to_text(event.limit));
  if (!event.stacks.empty()) hung.details.emplace_back("stacks", event.stacks);
  emit(std::move(hung));
  if (!restart) return;
  state.hung = event.process.rank;
  state.hung_because = printable(event.why);
  gang_failed(event.process.rank.mesh, g, now_ - event.waited);
}

// What is stopped by a signal is so until its end: the next generation is another process. A hold is of the rank's
// place.
void JobCore::on(const HoldAsked& event) {
  if (state_.phase == JobPhase::kEnded) return;
  for (const RankId& id : event.ranks) {
    std::vector<Rank>& held = state_.meshes[id.mesh.value()].held;
    const auto place = std::lower_bound(held.begin(), held.end(), id.rank);
    switch (event.wish) {
      case HoldWish::kHold:
        if (!is_held(basis_, id)) held.insert(place, id.rank);
        break;
      case HoldWish::kRelease:
        if (is_held(basis_, id)) held.erase(place);
        break;
      case HoldWish::kStop: rank(id).suspended = lives(basis_.member(id).stage); break;
      case HoldWish::kContinue: rank(id).suspended = false; break;
    }
  }
  const bool begins = event.wish == HoldWish::kHold || event.wish == HoldWish::kStop;
  const std::string who = event.who.empty() ? "an operator" : printable(event.who);
  if (begins) state_.held_by = who;
  if (event.wish != HoldWish::kHold && event.wish != HoldWish::kRelease) return;
  const bool held = event.wish == HoldWish::kHold;
  JobEvent told =
      event_of(held ? EventKind::kRanksHeld : EventKind::kRanksReleased, Severity::kInfo,
               text(names_of(event.ranks, spec_),
                    held ? ": not watched for hangs until released" : ": watched for hangs again", ", asked by ", who));
  const auto of_first = [&](const RankId& id) { return id.mesh == event.ranks.front().mesh; };
  if (!event.ranks.empty() && std::all_of(event.ranks.begin(), event.ranks.end(), of_first)) {
    told.mesh = mesh_spec(event.ranks.front().mesh).name;
    if (event.ranks.size() == 1) told.rank = event.ranks.front().rank.value();
  }
  emit(std::move(told));
}

}  // namespace monarch
