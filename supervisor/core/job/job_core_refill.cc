// Hosts that are lost while the job runs: who takes their slots, when they may be used again, and how many spares are
// kept.

#include <algorithm>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/job/occupants.h"
#include "supervisor/core/recovery/restart_budget.h"
#include "supervisor/core/spec/given_times.h"
#include "supervisor/core/state/gang_life.h"
#include "supervisor/core/state/host_life.h"
#include "transport/base/assert.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr Duration kLongestReturn = Duration::seconds(600);

// From the end of its orphan_ttl until a worker has ended its ranks and itself.
constexpr Duration kOrphanEndsWithin = Duration::seconds(15);

// It serves still, and nothing new is to start there.
bool is_left(const HostState& host) {
  return host.standing != HostStanding::kGood && host.phase == HostPhase::kJoined && !host.wedged;
}

// Each mesh counts what all have spent, in its own window.
Duration longest_window(const JobSpec& spec) {
  Duration longest = spec.supervision.reallocate.window;
  for (const MeshSpec& mesh : spec.meshes) longest = std::max(longest, mesh.supervision.reallocate.window);
  return longest;
}

// From its end until it may be launched again, longer each time; `at_once` where its worker ended by itself.
Duration return_wait(const HostState& host, bool at_once) {
  if (at_once && host.losses == 0) return Duration::zero();
  Duration wait = kFirstReturn;
  for (std::uint32_t i = at_once ? 1 : 0; i < host.losses && wait < kLongestReturn; ++i) wait = wait * 2;
  return std::min(wait, kLongestReturn);
}

// What a host lacks it will lack; whatever else kept its worker from starting may pass.
bool lacks_something(const HostState& host) {
  return host.failure && host.failure->kind == LaunchFailureKind::kResources;
}

// Its worker did not start while the job ran, and what may be left of it is being ended: then let_return() has it tried
// again.
bool is_tried_again(const HostState& host) {
  return host.phase == HostPhase::kDestroying && host.failure && !lacks_something(host) && !host.wedged &&
         host.standing == HostStanding::kGood;
}

}  // namespace

// Does any budget of the job allow that a host takes another's place?
bool JobCore::may_reallocate() const {
  return std::any_of(spec_.meshes.begin(), spec_.meshes.end(), [this](const MeshSpec& mesh) {
    const ReallocatePolicy& policy = mesh.supervision.reallocate;
    return !policy.max || still_count(state_.reallocations, policy.window, now_) < *policy.max;
  });
}

// That could take the place of another now; and those of a gang whose worker ended, and can be started again.
std::uint32_t JobCore::hosts_left(const std::vector<HostId>& own) const {
  std::uint32_t left = 0;
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    const bool held = is_taken(HostId(i));
    const bool its_own = std::find(own.begin(), own.end(), HostId(i)) != own.end();
    left += (!held && may_take(HostId(i))) || (its_own && is_free_to_launch(HostId(i))) ? 1U : 0U;
  }
  return left;
}

bool JobCore::is_free_to_launch(HostId id) const {
  const HostState& state = state_.hosts[id.value()];
  return state.phase == HostPhase::kCold && state.standing == HostStanding::kGood &&
         (may_request() || !spec_.is_on_request(id));
}

// Something on its slot may run yet.
bool JobCore::serves_gangs(HostId id) const {
  if (!placement_.holds_ranks(id)) return false;
  for (std::uint32_t m = 0; m < state_.meshes.size(); ++m) {
    const GangRange here = placement_.gangs_on(MeshId(m), id);
    for (std::uint32_t g = here.first; g < here.first + here.count; ++g) {
      if (!has_ended(state_.meshes[m].gangs[g].phase)) return true;
    }
  }
  return false;
}

// So, or what it wrote last is still to be read there. Where all has ended for good the slot may go to any host, and
// this one to another slot.
bool JobCore::is_taken(HostId id) const {
  if (!placement_.holds_ranks(id)) return false;
  if (serves_gangs(id)) return true;
  for (std::uint32_t m = 0; m < state_.meshes.size(); ++m) {
    const GangRange here = placement_.gangs_on(MeshId(m), id);
    for (std::uint32_t g = here.first; g < here.first + here.count; ++g) {
      for (const RankId& r : placement_.ranks_of(MeshId(m), GangId(g), id)) {
        if (is_on_its_way(r, id) && state_.hosts[id.value()].phase == HostPhase::kJoined) return true;
      }
    }
  }
  return false;
}

// As a host that is not taken.
bool JobCore::may_take(HostId id) const { return may_serve(id) || is_free_to_launch(id); }

// How long until each of the hosts that come back by themselves may be launched again, the first of them first.
std::vector<Duration> JobCore::returns(const std::vector<HostId>& own) const {
  std::vector<Duration> waits;
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    const HostState& state = state_.hosts[i];
    const bool its_own = std::find(own.begin(), own.end(), HostId(i)) != own.end();
    if (is_taken(HostId(i)) && !its_own) continue;
    if (spec_.is_on_request(HostId(i))) continue;  // who knows when anybody is granted?
    const bool out = state.phase == HostPhase::kEnded || state.phase == HostPhase::kLost;
    if (out && state.cold_at != Instant::never()) waits.push_back(std::max(state.cold_at - now_, Duration::zero()));
    if (state_.phase == JobPhase::kRunning && is_tried_again(state)) waits.push_back(return_wait(state, false));
  }
  std::sort(waits.begin(), waits.end());
  return waits;
}

FailureFacts JobCore::facts_of_lost_host(MeshId mesh, const std::vector<HostId>& hosts) const {
  const Supervision& policy = mesh_spec(mesh).supervision;
  const auto is_out = [this](HostId id) { return !may_serve(id); };
  const std::vector<Duration> due = returns(hosts);
  FailureFacts facts{.kind = FailureKind::kHostLost,
                     .slots_out = static_cast<std::uint32_t>(std::count_if(hosts.begin(), hosts.end(), is_out)),
                     .hosts_left = hosts_left(hosts),
                     .reallocations = still_count(state_.reallocations, policy.reallocate.window, now_),
                     .hosts_due = static_cast<std::uint32_t>(due.size()),
                     .may_park = may_park(mesh)};
  if (facts.slots_out > facts.hosts_left && facts.slots_out - facts.hosts_left <= due.size()) {
    facts.due_in = Duration::milliseconds(due[facts.slots_out - facts.hosts_left - 1].count_milliseconds());
  }
  const auto first = std::find_if(hosts.begin(), hosts.end(), is_out);
  if (first == hosts.end()) return facts;
  const HostState& host = state_.hosts[first->value()];
  if (is_left(host)) facts.out = "host drained";
  if (host.standing == HostStanding::kQuarantined) facts.out = "host quarantined";
  return facts;
}

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
  if (may_serve(at)) return;
  give_up_reservations(slot);  // or the answer that is on its way would start them there
  // Each by its own policy, and each gang that is parked is one less that may be. One move serves all that wait for it.
  std::optional<std::pair<MeshId, Recovery>> move;
  for (const auto& [mesh, g] : waiting) {
    Recovery next = recover(mesh_spec(mesh).supervision, facts_of_lost_host(mesh, {at}));
    if (next.remedy == Remedy::kPark || next.remedy == Remedy::kFail) give_up(mesh, g, at, next);
    if (next.remedy == Remedy::kReplace && !move) move.emplace(mesh, std::move(next));
    if (state_.phase > JobPhase::kRunning) return;
  }
  if (!move) return;
  const std::optional<HostId> other = replacement();
  const bool itself = is_free_to_launch(at) && (!other || !may_serve(*other) || host(*other).doubted);
  if (!itself && host(*other).doubted) return;
  if (somebody_lives_on(state_, placement_, at)) {
    // Who goes on where nothing new may start is not stopped for it: the slot moves once all of them have ended.
    if (!is_left(state_.hosts[at.value()])) evict(slot);
    return;
  }
  forget_older(state_.reallocations, longest_window(spec_), now_);
  state_.reallocations.push_back(now_);
  const std::string& rule = move->second.rule;
  itself ? launch_again(at, rule) : move_slot(slot, *other, rule);
  check_inventory(slot);
}

// Who lives on a host that is left goes with the others; the slot is on another host once they have ended.
void JobCore::evict(std::uint32_t slot) {
  const HostId at = state_.slots[slot];
  each_gang_on(at, [&](MeshId m, GangId g) {
    GangState& state = gang(m, g);
    const bool runs = state.phase == GangPhase::kStarting || state.phase == GangPhase::kRunning;
    if (!runs) return;
    state.host_lost = true;
    state.lost_host = at;
    gang_failed(m, g);
  });
}

// Could what waits on this slot go to another host now?
bool JobCore::may_leave(std::uint32_t slot, MeshId mesh) const {
  const HostId at = state_.slots[slot];
  if (somebody_lives_on(state_, placement_, at)) return false;
  FailureFacts facts = facts_of_lost_host(mesh, {});
  facts.slots_out = 1;
  return recover(mesh_spec(mesh).supervision, facts).remedy == Remedy::kReplace;
}

void JobCore::launch_again(HostId id, const std::string& rule) {
  const std::string& name = hosts_[id.value()].name;
  JobEvent again = event_of(EventKind::kHostReplaced, Severity::kWarning,
                            text(name, ": its worker is launched again", rule.empty() ? "" : text(" [", rule, "]")));
  again.host = name;
  again.details = {{"replaces", name}};
  emit(std::move(again));
  launch(id);
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
    if (drained) verdict.reason += text("; ", hosts_[where.value()].name, " is ", lost.lost_because);
  } else if (drained) {
    verdict.exit_code = kExitLost;
    verdict.cause.kind = CauseKind::kHost;
    verdict.cause.host = hosts_[where.value()].name;
    verdict.cause.mesh = mesh_spec(mesh).name;
    verdict.cause.summary = text("host ", verdict.cause.host, " is ", lost.lost_because);
    verdict.reason = verdict.cause.summary;
  } else {
    const std::string name = hosts_[where.value()].name;
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
  if (!mesh_spec(mesh).sidecar) return fail_job(std::move(verdict));
  to(state, GangPhase::kFailed);
  crews_.forget({mesh, g});
  say_of_gang(mesh, g, EventKind::kGangFailed, Severity::kWarning,
              text("is given up: ", verdict.reason, " [a sidecar does not decide: the job goes on without it]"));
  if (!state.ever_ready) sidecar_never_ready(mesh, g, std::move(verdict));
}

// A virtual host whose last worker is not proven to have ended: the guard, which is on its machine, proves that sooner
// or later, and whoever is launched before meets that worker in its place. Of a machine the proof may never come.
bool JobCore::is_occupied(const HostState& state) const {
  return state.phase == HostPhase::kLost && spec_.launch.facts().proves_ends;
}

// A host that was lost and is proven to be free, or cannot act any longer, may serve again: at once where its worker
// ended by itself for the first time, else later, and later each time.
void JobCore::let_return(HostId id, bool at_once) {
  HostState& state = host(id);
  if (state_.phase < JobPhase::kStarting || state_.phase > JobPhase::kRunning) return;
  const bool regrows = std::any_of(spec_.meshes.begin(), spec_.meshes.end(), [](const MeshSpec& mesh) {
    return mesh.supervision.shrink && mesh.supervision.shrink->regrow;
  });
  if (!may_reallocate() && !regrows) return;
  if (state.wedged || state.standing != HostStanding::kGood || is_occupied(state)) return;
  // What did not start stays out until the job runs.
  if (lacks_something(state) || (state.failure && state_.phase == JobPhase::kStarting)) return;
  const bool longer_ago = now_ - state.launched_at > spec_.supervision.reallocate.window;
  if (longer_ago || spec_.is_on_request(id)) state.losses = 0;  // the next one is another machine
  Duration wait = return_wait(state, at_once || spec_.is_on_request(id));
  // What may still live there ends by itself, unless it is heard before.
  if (state.phase == HostPhase::kLost) wait = std::max(wait, spec_.supervision.orphan_ttl + kOrphanEndsWithin);
  ++state.losses;
  if (!spec_.is_on_request(id) && is_lemon(id)) return leave_lemon(id);
  state.cold_at = std::max(now_, state.fence) + wait;
  if (state.cold_at <= now_) become_cold(id);
}

void JobCore::become_cold(HostId id) {
  HostState& state = host(id);
  MONARCH_ASSERT_BECAUSE(state.fence <= now_, "I3: what ran there may act no longer");
  owed_is_due(id);  // nobody is left who would send it
  to(state, HostPhase::kCold);
  HostState fresh;
  fresh.standing = state.standing;
  fresh.unproven = state.unproven;
  fresh.losses = state.losses;
  fresh.awaited = state.awaited;
  fresh.suspicions = std::move(state.suspicions);
  fresh.lost_at = std::move(state.lost_at);
  fresh.lost_because = std::move(state.lost_because);
  state = std::move(fresh);
  take_name(id);
  waits_due_ = true;
}

void JobCore::keep_spares() {
  std::uint32_t spares = 0;
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    spares += may_serve(HostId(i)) && !placement_.holds_ranks(HostId(i)) ? 1U : 0U;
  }
  for (std::uint32_t i = 0; i < state_.hosts.size() && spares < spec_.spares(); ++i) {
    if (!is_free_to_launch(HostId(i)) || placement_.holds_ranks(HostId(i))) continue;
    launch(HostId(i));
    ++spares;
  }
}

}  // namespace monarch
