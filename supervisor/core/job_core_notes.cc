// What is noted for people, and for the programs of ranks; nothing is started or stopped by it.

#include <algorithm>

#include "supervisor/core/job_core.h"
#include "transport/base/text.h"

namespace monarch {

void JobCore::on(const PeopleTold& event) {
  if (state_.phase != JobPhase::kEnded) emit(event.event);
}

void JobCore::on(const HostsHeld& event) {
  emit(event_of("hosts.held", Severity::kWarning,
                text(event.silent, " of ", event.of,
                     " hosts fell silent together: the supervisor's own network, or a "
                     "switch, is suspected, and none of them is given up within ",
                     to_text(event.until - now_))));
}

void JobCore::on(const RankHung& event) {
  const GangId g = mesh_spec(event.rank.mesh).gang_of(event.rank.rank);
  GangState& state = gang(event.rank.mesh, g);
  if (state.generation != event.generation) return;  // it is told of one that has ended
  const bool alive = state.phase == GangPhase::kStarting || state.phase == GangPhase::kRunning;
  if (!alive) return;  // it is being stopped for another reason
  const MeshSpec& spec = mesh_spec(event.rank.mesh);
  const bool restart = event.action == HangAction::kRestart;
  const char* what = restart ? "[hang.action: restart: its gang is stopped]"
                     : spec.supervision.hang.action == HangAction::kRestart
                         ? "[hang.action: restart; the limit is not written: reported only]"
                         : "[hang.action: report: nothing is stopped]";
  JobEvent hung = event_of("rank.hung", restart ? Severity::kError : Severity::kWarning,
                           text(spec.name, "/", event.rank.rank.value(), " on ", hosts_[event.host.value()].name, ": ",
                                printable(event.why), " ", what));
  hung.host = hosts_[event.host.value()].name;
  hung.mesh = spec.name;
  hung.rank = event.rank.rank.value();
  hung.generation = event.generation.counter;
  hung.pid = rank(event.rank).pid;
  if (!event.phase.empty()) hung.details.emplace_back("phase", printable(event.phase));
  hung.details.emplace_back("waited", to_text(event.waited));
  hung.details.emplace_back("limit", to_text(event.limit));
  if (!event.stacks.empty()) hung.details.emplace_back("stacks", event.stacks);
  emit(std::move(hung));
  if (!restart) return;
  state.hung = event.rank;
  state.hung_because = printable(event.why);
  gang_failed(event.rank.mesh, g);
}

// All that follows in the gang came after our own signals: who made no progress is the cause.
Verdict JobCore::blame_hung(MeshId mesh, GangId g) const {
  constexpr int kExitHung = 1;
  Verdict verdict;
  verdict.exit_code = kExitHung;
  FirstCause& cause = verdict.cause;
  const MeshSpec& spec = mesh_spec(mesh);
  const GangState& state = gang(mesh, g);
  cause.kind = CauseKind::kRank;
  cause.host = hosts_[placement_.host_of(*state.hung).value()].name;
  cause.rank = state.hung->rank.value();
  cause.pid = rank(*state.hung).pid;
  if (spec.gangs() > 1) {
    cause.gang = g.value();
    cause.gang_rank = *cause.rank - placement_.range_of(mesh, g).first;
  }
  cause.summary = text("made no progress: ", state.hung_because);
  cause.rule = "hang.action: restart";
  verdict.reason = text(spec.name, "/", *cause.rank, " on ", cause.host, " ", cause.summary);
  return verdict;
}

bool JobCore::is_held(RankId id) const {
  const std::vector<Rank>& held = state_.meshes[id.mesh.value()].held;
  return std::binary_search(held.begin(), held.end(), id.rank);
}

// What is stopped by a signal is so until its end: the next generation is another process. A hold is of the rank's place.
void JobCore::on(const HoldAsked& event) {
  if (state_.phase == JobPhase::kEnded) return;
  for (const RankId& id : event.ranks) {
    std::vector<Rank>& held = state_.meshes[id.mesh.value()].held;
    const auto place = std::lower_bound(held.begin(), held.end(), id.rank);
    switch (event.wish) {
      case HoldWish::kHold:
        if (!is_held(id)) held.insert(place, id.rank);
        break;
      case HoldWish::kRelease:
        if (is_held(id)) held.erase(place);
        break;
      case HoldWish::kStop: rank(id).suspended = lives(rank(id).stage); break;
      case HoldWish::kContinue: rank(id).suspended = false; break;
    }
  }
  const bool begins = event.wish == HoldWish::kHold || event.wish == HoldWish::kStop;
  if (begins) state_.held_by = event.who.empty() ? "an operator" : printable(event.who);
  const std::string count = text(event.ranks.size(), event.ranks.size() == 1 ? " rank" : " ranks");
  if (event.wish == HoldWish::kHold) {
    emit(event_of("ranks.held", Severity::kInfo,
                  text(count, " not watched for hangs, as ", printable(event.who), " asked, until released")));
  } else if (event.wish == HoldWish::kRelease) {
    emit(event_of("ranks.released", Severity::kInfo,
                  text(count, " watched for hangs again, as ", printable(event.who), " asked")));
  }
}

}  // namespace monarch
