// Quarantine: a host on which two different ranks died, as the first causes of their gangs, of what is not their
// program's doing. It is left for good where another host can take its place; else its gangs go on there, and it is
// said. One whose word cannot be trusted is left whatever follows. And a lemon: a host that is lost again and again. It
// stays out while the job has enough others, and is used again rather than nothing.

#include <algorithm>

#include "supervisor/core/job/job_core.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// A program's own doing: it said so by its exit code, could not be executed, took too much memory, or dies where it
// died before.
bool tells_of_host(const RankEnd& end, const std::optional<Crash>& crash) {
  if (is_lack_of_host(end)) return !end.after_our_signal;
  return end.kind == EndKind::kSignaled && !end.after_our_signal && !end.out_of_memory && (!crash || crash->count == 1);
}

}  // namespace

void JobCore::suspect_host(MeshId mesh, GangId g) {
  if (drills_.is_own_blow(mesh, g)) return;
  const GangState& state = gang(mesh, g);
  const FirstCause& cause = state.failure->cause;
  if (cause.kind != CauseKind::kRank || !cause.rank || state.hung || !tells_of_host(cause.end, state.crash)) return;
  const RankId who{mesh, Rank(*cause.rank)};
  const HostId where = placement_.host_of(who);
  std::vector<Suspicion>& suspicions = host(where).suspicions;
  const Duration window = mesh_spec(mesh).supervision.restart.window;
  const bool known =
      std::any_of(suspicions.begin(), suspicions.end(), [who](const Suspicion& s) { return s.rank == who; });
  std::erase_if(suspicions, [&](const Suspicion& s) { return s.rank == who || now_ - s.at >= window; });
  suspicions.push_back({.rank = who, .at = now_});
  if (suspicions.size() < 2) return;  // no evidence yet
  const auto name_of = [this](RankId id) { return text(mesh_spec(id.mesh).name, "/", id.rank.value()); };
  const std::string why = text(hosts_[where.value()].name, ": ", name_of(suspicions.front().rank), " and ",
                               name_of(who), " died there of what is not their program's doing");
  FailureFacts facts = facts_of_lost_host(basis_, mesh, {});
  facts.slots_out = 1;
  const Recovery next = recover(mesh_spec(mesh).supervision, facts);
  const bool leave = next.remedy == Remedy::kReplace && lives_alone(basis_, mesh, g, where);
  if (!leave && known) return;  // told before
  JobEvent event = event_of(leave ? EventKind::kHostQuarantined : EventKind::kHostDoubtful, Severity::kWarning,
                            leave ? text(why, ": it is left for good")
                                  : text(why, "; no other host can take its place now: its gang goes on there"));
  event.host = hosts_[where.value()].name;
  emit(std::move(event));
  if (!leave) return;
  quarantine(where, "quarantined");
}

// For good: it is no lemon, which is recalled.
void JobCore::quarantine(HostId id, const std::string& because) {
  host(id).standing = HostStanding::kQuarantined;
  host(id).lost_at.clear();
  host(id).lost_because = because;
  waits_due_ = true;
}

void JobCore::on(const HostDistrusted& event) {
  HostState& state = host(event.host);
  if (!is_launched(state.phase) && !is_joined(state.phase)) return;
  const std::string& name = hosts_[event.host.value()].name;
  JobEvent left =
      event_of(EventKind::kHostQuarantined, Severity::kError, text(name, ": ", event.why, ": it is left for good"));
  left.host = name;
  emit(std::move(left));
  quarantine(event.host, text("quarantined: ", event.why));
  if (is_launched(state.phase)) {
    host_failed(event.host, {.kind = LaunchFailureKind::kOther,
                             .phase = "call back",
                             .elapsed = now_ - state.launched_at,
                             .message = event.why,
                             .words = {},
                             .again = {}});
  } else {
    state.fence = std::max(state.fence, event.grants_until);
    lose_host(event.host, event.why);
  }
  destroy(event.host);
  mark_ranks_lost(event.host);
}

void JobCore::leave_lemon(HostId id) {
  HostState& state = host(id);
  state.standing = HostStanding::kQuarantined;
  state.cold_at = Instant::never();
  JobEvent event = event_of(EventKind::kHostQuarantined, Severity::kWarning,
                            text(hosts_[id.value()].name, ": lost ", state.lost_at.size(), " times within ",
                                 to_text(spec_.supervision.reallocate.window), ": it is left while others suffice"));
  event.host = hosts_[id.value()].name;
  emit(std::move(event));
  state.lost_because = "quarantined: lost again and again";
  waits_due_ = true;
}

// As soon as there are fewer others than slots. `lost` is about to go.
void JobCore::recall_lemons(std::optional<HostId> lost) {
  std::size_t others = 0;
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i)
    others += HostId(i) != lost && may_take(basis_, HostId(i)) ? 1U : 0U;
  for (std::uint32_t i = 0; i < state_.hosts.size() && others < placement_.slots().size(); ++i) {
    HostState& state = state_.hosts[i];
    if (state.standing != HostStanding::kQuarantined || state.lost_at.size() < kLemonLosses) continue;
    state.standing = HostStanding::kGood;
    state.losses = 0;
    state.lost_at.clear();
    let_return(HostId(i), state.phase == HostPhase::kEnded);  // by the rules for any host that was lost
    ++others;
    JobEvent event = event_of(EventKind::kHostRecalled, Severity::kWarning,
                              text(hosts_[i].name, ": may be used again, for the job has too few others"));
    event.host = hosts_[i].name;
    emit(std::move(event));
  }
}

}  // namespace monarch
