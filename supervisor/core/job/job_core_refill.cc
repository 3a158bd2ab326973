// Hosts that are lost while the job runs: who takes their slots, when they may be used again, and how many spares are
// kept.

#include <algorithm>

#include "supervisor/core/facts/occupants.h"
#include "supervisor/core/job/job_core.h"
#include "supervisor/core/recovery/restart_budget.h"
#include "supervisor/core/spec/given_times.h"
#include "supervisor/core/state/gang_life.h"
#include "supervisor/core/state/host_life.h"
#include "transport/base/assert.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Each mesh counts what all have spent, in its own window.
Duration longest_window(const JobSpec& spec) {
  Duration longest = spec.supervision.reallocate.window;
  for (const MeshSpec& mesh : spec.meshes) longest = std::max(longest, mesh.supervision.reallocate.window);
  return longest;
}

}  // namespace

// A slot of gangs that have started before, and whose host is out: once nothing lives there, another host takes it.
void JobCore::refill_slot(std::uint32_t slot) {
  const HostId at = state_.slots[slot];
  std::vector<std::pair<MeshId, GangId>> waiting;
  each_gang_on(at, [&](MeshId m, GangId g) {
    if (waits(gang(m, g).phase)) waiting.emplace_back(m, g);
  });
  if (waiting.empty()) return;
  if (!somebody_lives_on(state_, placement_, at))
    check_inventory(slot);  // it may have been launched for this slot, and told only now what it has
  if (basis_.may_serve(at)) return;
  give_up_reservations(slot);  // or the answer that is on its way would start them there
  // Each by its own policy, and each gang that is parked is one less that may be. One move serves all that wait for it.
  std::optional<std::pair<MeshId, Recovery>> move;
  for (const auto& [mesh, g] : waiting) {
    Recovery next = recover(mesh_spec(mesh).supervision, facts_of_lost_host(basis_, mesh, {at}));
    if (next.remedy == Remedy::kPark || next.remedy == Remedy::kFail) give_up(mesh, g, at, next);
    if (next.remedy == Remedy::kReplace && !move) move.emplace(mesh, std::move(next));
    if (state_.phase > JobPhase::kRunning) return;
  }
  if (!move) return;
  const std::optional<HostId> other = replacement(basis_);
  const bool itself = is_free_to_launch(basis_, at) && (!other || !basis_.may_serve(*other) || host(*other).doubted);
  if (!itself && host(*other).doubted) return;
  if (somebody_lives_on(state_, placement_, at)) {
    // Who goes on where nothing new may start is not stopped for it: the slot moves once all of them have ended.
    if (!is_left(state_.hosts[at.value()])) evict(slot);
    return;
  }
  forget_older(state_.reallocations, longest_window(spec_), now_);
  state_.reallocations.push_back(now_);
  const std::string& rule = move->second.rule;
  itself ? hosts_.launch_again(at, rule) : move_slot(slot, *other, rule);
  check_inventory(slot);
}

// Who lives on a host that is left goes with the others; the slot is on another host once they have ended.
void JobCore::evict(std::uint32_t slot) {
  const HostId at = state_.slots[slot];
  each_gang_on(at, [&](MeshId m, GangId g) {
    GangState& state = gang(m, g);
    if (!runs(state.phase)) return;
    state.host_lost = true;
    state.lost_host = at;
    gang_failed(m, g);
  });
}

// No host is left for a gang that waits.
void JobCore::give_up(MeshId mesh, GangId g, HostId where, const Recovery& why) {
  GangState& state = gang(mesh, g);
  if (!waits(state.phase)) return;  // a neighbour has ended the job
  if (why.remedy == Remedy::kPark) return park(mesh, g, where, why.rule);
  Verdict verdict;
  const HostState& lost = state_.hosts[where.value()];
  const bool drained = is_left(lost);
  // Of a host that is drained nothing was lost: why its gang has to start again is the cause.
  const bool known = recovers(state) && (state.failure->cause.kind == CauseKind::kHost ||
                                         (drained && state.failure->cause.kind == CauseKind::kRank));
  if (known) {
    verdict = *state.failure;
    if (drained) verdict.reason += text("; ", pool_[where.value()].name, " is ", lost.lost_because);
  } else if (drained) {
    verdict.exit_code = kExitLost;
    verdict.cause.kind = CauseKind::kHost;
    verdict.cause.host = pool_[where.value()].name;
    verdict.cause.mesh = mesh_spec(mesh).name;
    verdict.cause.summary = text("host ", verdict.cause.host, " is ", lost.lost_because);
    verdict.reason = verdict.cause.summary;
  } else {
    const std::string name = pool_[where.value()].name;
    const bool starting = state_.phase == JobPhase::kStarting;
    verdict.exit_code = starting ? kExitUnreachable : kExitLost;
    verdict.cause.kind = CauseKind::kHost;
    verdict.cause.host = name;
    verdict.cause.mesh = mesh_spec(mesh).name;
    verdict.cause.summary = lost.wedged ? text("host ", name, " is wedged: a process on it does not end after SIGKILL")
                                        : text("host ", name, " was lost", starting ? " while starting" : "",
                                               lost.lost_because.empty() ? "" : ": ", lost.lost_because);
    verdict.reason = verdict.cause.summary;
  }
  verdict.cause.rule = why.rule;
  state.failure.reset();
  if (!mesh_spec(mesh).sidecar) return end_.fail(std::move(verdict));
  to(state, GangPhase::kFailed);
  crews_.forget({mesh, g});
  basis_.say_of_gang(mesh, g, EventKind::kGangFailed, Severity::kWarning,
                     text("is given up: ", verdict.reason, " [a sidecar does not decide: the job goes on without it]"));
  if (!state.ever_ready) sidecar_never_ready(mesh, g, std::move(verdict));
}

void JobCore::keep_spares() {
  std::uint32_t spares = 0;
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    spares += basis_.may_serve(HostId(i)) && !placement_.holds_ranks(HostId(i)) ? 1U : 0U;
  }
  for (std::uint32_t i = 0; i < state_.hosts.size() && spares < spec_.spares(); ++i) {
    if (!is_free_to_launch(basis_, HostId(i)) || placement_.holds_ranks(HostId(i))) continue;
    hosts_.launch(HostId(i));
    ++spares;
  }
}

}  // namespace monarch
