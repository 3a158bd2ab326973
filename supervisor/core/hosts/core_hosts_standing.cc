#include "supervisor/core/hosts/core_hosts.h"

#include <algorithm>
#include <utility>

#include "supervisor/core/facts/slots.h"
#include "supervisor/core/recovery/recovery.h"
#include "supervisor/core/state/host_life.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// From the end of its orphan_ttl until a worker has ended its ranks and itself.
constexpr Duration kOrphanEndsWithin = Duration::seconds(15);

// A program's own doing: it said so by its exit code, could not be executed, took too much memory, or dies where it
// died before.
bool tells_of_host(const RankEnd& end, const std::optional<Crash>& crash) {
  if (is_lack_of_host(end)) return !end.after_our_signal;
  return end.kind == EndKind::kSignaled && !end.after_our_signal && !end.out_of_memory && (!crash || crash->count == 1);
}

}  // namespace

void CoreHosts::suspect(MeshId mesh, GangId g) {
  if (drills_.is_own_blow(mesh, g)) return;
  const GangState& state = basis_.gang(mesh, g);
  const FirstCause& cause = state.failure->cause;
  if (cause.kind != CauseKind::kRank || !cause.rank || state.hung || !tells_of_host(cause.end, state.crash)) return;
  const RankId who{mesh, Rank(*cause.rank)};
  const HostId where = basis_.placement.host_of(who);
  std::vector<Suspicion>& suspicions = host(where).suspicions;
  const Duration window = basis_.mesh(mesh).supervision.restart.window;
  const bool known =
      std::any_of(suspicions.begin(), suspicions.end(), [who](const Suspicion& s) { return s.rank == who; });
  std::erase_if(suspicions, [&](const Suspicion& s) { return s.rank == who || basis_.now - s.at >= window; });
  suspicions.push_back({.rank = who, .at = basis_.now});
  if (suspicions.size() < 2) return;  // no evidence yet
  const std::string why = text(basis_.name_of(where), ": ", basis_.name_of(suspicions.front().rank), " and ",
                               basis_.name_of(who), " died there of what is not their program's doing");
  FailureFacts facts = facts_of_lost_host(basis_, mesh, {});
  facts.slots_out = 1;
  const Recovery next = recover(basis_.mesh(mesh).supervision, facts);
  const bool leave = next.remedy == Remedy::kReplace && lives_alone(basis_, mesh, g, where);
  if (!leave && known) return;  // told before
  JobEvent event = basis_.event(leave ? EventKind::kHostQuarantined : EventKind::kHostDoubtful, Severity::kWarning,
                                leave ? text(why, ": it is left for good")
                                      : text(why, "; no other host can take its place now: its gang goes on there"));
  event.host = basis_.name_of(where);
  basis_.emit(std::move(event));
  if (!leave) return;
  quarantine(where, "quarantined");
}

// For good: it is no lemon, which is recalled.
void CoreHosts::quarantine(HostId id, const std::string& because) {
  host(id).standing = HostStanding::kQuarantined;
  host(id).lost_at.clear();
  host(id).lost_because = because;
  basis_.waits_due = true;
}

void CoreHosts::on(const HostDistrusted& event) {
  HostState& state = host(event.host);
  if (!is_launched(state.phase) && !is_joined(state.phase)) return;
  const std::string& name = basis_.name_of(event.host);
  JobEvent left =
      basis_.event(EventKind::kHostQuarantined, Severity::kError, text(name, ": ", event.why, ": it is left for good"));
  left.host = name;
  basis_.emit(std::move(left));
  quarantine(event.host, text("quarantined: ", event.why));
  if (is_launched(state.phase)) {
    failed(event.host, {.kind = LaunchFailureKind::kOther,
                        .phase = "call back",
                        .elapsed = basis_.now - state.launched_at,
                        .message = event.why,
                        .words = {},
                        .again = {}});
  } else {
    state.fence = std::max(state.fence, event.grants_until);
    lose(event.host, event.why);
  }
  destroy(event.host);
  news_.push_back({.what = HostNews::What::kGone, .host = event.host});
}

void CoreHosts::leave_lemon(HostId id) {
  HostState& state = host(id);
  state.standing = HostStanding::kQuarantined;
  state.cold_at = Instant::never();
  JobEvent event =
      basis_.event(EventKind::kHostQuarantined, Severity::kWarning,
                   text(basis_.name_of(id), ": lost ", state.lost_at.size(), " times within ",
                        to_text(basis_.spec.supervision.reallocate.window), ": it is left while others suffice"));
  event.host = basis_.name_of(id);
  basis_.emit(std::move(event));
  state.lost_because = "quarantined: lost again and again";
  basis_.waits_due = true;
}

void CoreHosts::recall_lemons(std::optional<HostId> lost) {
  std::size_t others = 0;
  for (std::uint32_t i = 0; i < mine_.size(); ++i) others += HostId(i) != lost && may_take(basis_, HostId(i)) ? 1U : 0U;
  for (std::uint32_t i = 0; i < mine_.size() && others < basis_.placement.slots().size(); ++i) {
    HostState& state = mine_[i];
    if (state.standing != HostStanding::kQuarantined || state.lost_at.size() < kLemonLosses) continue;
    state.standing = HostStanding::kGood;
    state.losses = 0;
    state.lost_at.clear();
    let_return(HostId(i), state.phase == HostPhase::kEnded);  // by the rules for any host that was lost
    ++others;
    JobEvent event = basis_.event(EventKind::kHostRecalled, Severity::kWarning,
                                  text(basis_.hosts[i].name, ": may be used again, for the job has too few others"));
    event.host = basis_.hosts[i].name;
    basis_.emit(std::move(event));
  }
}

void CoreHosts::drain(HostId id, const std::string& who) {
  HostState& state = host(id);
  if (state.standing != HostStanding::kGood) return;
  state.standing = HostStanding::kDrained;
  state.wanted = false;
  state.lost_because = text("drained, asked by ", who);
  state.cold_at = Instant::never();
  JobEvent drained = basis_.event(EventKind::kHostDrained, Severity::kInfo,
                                  text(basis_.name_of(id), ": nothing new starts there, asked by ", who));
  drained.host = basis_.name_of(id);
  basis_.emit(std::move(drained));
}

void CoreHosts::undrain(HostId id, const std::string& who) {
  HostState& state = host(id);
  if (state.standing != HostStanding::kDrained) return;
  take_back(id);
  JobEvent undrained =
      basis_.event(EventKind::kHostUndrained, Severity::kInfo,
                   text(basis_.name_of(id), ": may be used again",
                        state.wanted ? ", once its worker of before is known to have ended" : "", ", asked by ", who));
  undrained.host = basis_.name_of(id);
  basis_.emit(std::move(undrained));
}

// Where its worker has ended meanwhile it is launched when it is needed; where nobody knows that, once it is proven.
void CoreHosts::take_back(HostId id) {
  HostState& state = host(id);
  state.standing = HostStanding::kGood;
  state.losses = 0;
  const bool gone = is_out(state.phase);
  const bool ending = is_destroying(state.phase) && basis_.spec.launch.facts().proves_ends;
  state.wanted = !state.wedged && (is_occupied(basis_, state) || ending);
  if (is_occupied(basis_, state)) basis_.actions.emplace_back(DestroyWorker{id});  // its end is looked for once more
  if (gone && !state.wedged && !state.wanted) state.cold_at = std::max(basis_.now, state.fence);
}

std::string CoreHosts::forgive() {
  std::string freed;
  for (std::uint32_t i = 0; i < mine_.size(); ++i) {
    HostState& host = mine_[i];
    if (host.standing == HostStanding::kQuarantined) {
      take_back(HostId(i));
      freed += text(freed.empty() ? "; may be used again: " : ", ", basis_.hosts[i].name);
    }
    host.losses = 0;
    host.suspicions.clear();
    host.lost_at.clear();
    if (host.cold_at != Instant::never()) host.cold_at = std::max(basis_.now, host.fence);
  }
  return freed;
}

// A host that was lost and is proven to be free, or cannot act any longer, may serve again: at once where its worker
// ended by itself for the first time, else later, and later each time.
void CoreHosts::let_return(HostId id, bool at_once) {
  HostState& state = host(id);
  if (basis_.state.phase < JobPhase::kStarting || basis_.state.phase > JobPhase::kRunning) return;
  const bool regrows = std::any_of(basis_.spec.meshes.begin(), basis_.spec.meshes.end(), [](const MeshSpec& mesh) {
    return mesh.supervision.shrink && mesh.supervision.shrink->regrow;
  });
  if (!may_reallocate(basis_) && !regrows) return;
  if (state.wedged || state.standing != HostStanding::kGood || is_occupied(basis_, state)) return;
  // What did not start stays out until the job runs.
  if (lacks_something(state) || (state.failure && basis_.state.phase == JobPhase::kStarting)) return;
  const bool longer_ago = basis_.now - state.launched_at > basis_.spec.supervision.reallocate.window;
  if (longer_ago || basis_.spec.is_on_request(id)) state.losses = 0;  // the next one is another machine
  Duration wait = return_wait(state, at_once || basis_.spec.is_on_request(id));
  // What may still live there ends by itself, unless it is heard before.
  if (state.phase == HostPhase::kLost) wait = std::max(wait, basis_.spec.supervision.orphan_ttl + kOrphanEndsWithin);
  ++state.losses;
  if (!basis_.spec.is_on_request(id) && is_lemon(basis_, id)) return leave_lemon(id);
  state.cold_at = std::max(basis_.now, state.fence) + wait;
  if (state.cold_at <= basis_.now) become_cold(id);
}

void CoreHosts::become_cold(HostId id) {
  HostState& state = host(id);
  MONARCH_ASSERT_BECAUSE(state.fence <= basis_.now, "I3: what ran there may act no longer");
  last_words_.give_up(id);  // nobody is left who would send it
  to(state, HostPhase::kCold);
  HostState fresh;
  fresh.standing = state.standing;
  fresh.unproven = state.unproven;
  fresh.losses = state.losses;
  fresh.suspicions = std::move(state.suspicions);
  fresh.lost_at = std::move(state.lost_at);
  fresh.lost_because = std::move(state.lost_because);
  state = std::move(fresh);
  names_.take(id);
  basis_.waits_due = true;
}

}  // namespace monarch
