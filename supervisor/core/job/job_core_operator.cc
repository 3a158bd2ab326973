// What an operator asks for while the job runs: gangs started again, hosts that are left or may be used again.

#include <algorithm>
#include <set>
#include <variant>

#include "supervisor/core/job/job_core.h"
#include "transport/base/text.h"

namespace monarch {

void JobCore::on(const OperatorAsked& event) {
  if (state_.phase < JobPhase::kStarting || basis_.starts_nothing()) return;  // a stop wins over everything
  const std::string who = event.who.empty() ? "an operator" : printable(event.who);
  for (const HostId id : event.hosts) {
    if (event.wish == OperatorWish::kDrain) hosts_.drain(id, who);
    if (event.wish == OperatorWish::kUndrain) hosts_.undrain(id, who);
  }
  std::set<std::pair<MeshId, GangId>> gangs;
  for (const RankId& id : event.ranks) gangs.emplace(id.mesh, mesh_spec(id.mesh).gang_of(id.rank));
  if (event.wish == OperatorWish::kRetry) forgive({gangs.begin(), gangs.end()}, who);
  for (const auto& [mesh, g] : gangs) {
    event.wish == OperatorWish::kRetry ? retry(mesh, g) : restart_as_asked(mesh, g, who);
  }
  look_at_hosts();
  waits_due_ = true;
}

void JobCore::restart_as_asked(MeshId mesh, GangId g, const std::string& who) {
  GangState& state = gang(mesh, g);
  if (is_waiting(state.phase)) state.not_before = now_;
  if (!runs(state.phase)) return;
  state.asked = who;
  basis_.say_of_gang(mesh, g, EventKind::kGangStopping, Severity::kInfo,
                     text("is stopped and started again, asked by ", who));
  const StopPolicy& policy = mesh_spec(mesh).stop;
  stop_gang(mesh, g, policy.signal, policy.grace);
}

// It has ended as it was asked to; no budget is spent.
void JobCore::start_as_asked(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  Verdict verdict;
  verdict.cause.kind = CauseKind::kRequest;
  verdict.cause.mesh = mesh_spec(mesh).name;
  verdict.cause.summary = text("started again, asked by ", state.asked);
  verdict.reason = verdict.cause.summary;
  state.asked.clear();
  state.failure = std::move(verdict);
  state.failed_at = now_;
  state.not_before = now_;
  ++state.restarts;
  await_next(mesh, g);
}

// What failed is forgiven, and what waits is tried now.
void JobCore::retry(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  forget_failures(state);
  if (is_waiting(state.phase)) state.not_before = now_;
  if (state.phase != GangPhase::kFailed) return;
  state.asked = "monarch retry";  // a sidecar that was given up
  start_as_asked(mesh, g);
}

// Their workers, once nothing that may run yet is on them, and what ran there last has been read.
void JobCore::end_drained() {
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    const HostId id(i);
    const HostState& state = state_.hosts[i];
    if (state.standing != HostStanding::kDrained || is_destroying(state.phase)) continue;
    if (serves_gangs(basis_, id) || last_words_.awaited(id, drain_patience(basis_))) continue;
    hosts_.destroy(id);
  }
}

// Said with what it forgives: what comes after is counted anew.
void JobCore::forgive(const std::vector<std::pair<MeshId, GangId>>& gangs, const std::string& who) {
  std::size_t failures = 0;
  for (const auto& [mesh, g] : gangs) failures += gang(mesh, g).failures.size();
  const std::string freed = hosts_.forgive();
  const std::size_t moves = state_.reallocations.size();
  emit(event_of(
      EventKind::kFailuresForgiven, Severity::kInfo,
      text(failures, failures == 1 ? " failure" : " failures", " of ranks and ", moves,
           moves == 1 ? " replacement" : " replacements", " of hosts do not count any longer, asked by ", who, freed)));
  state_.reallocations.clear();
}

}  // namespace monarch
