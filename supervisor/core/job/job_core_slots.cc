// Slots: which host each is on. Until a gang of it has started, a slot whose host is out goes to a spare, or to a cold
// host of the pool, and no budget is spent; with none left the job fails, as soon as it is known of every other host
// whether it starts, so that all are named.

#include <algorithm>

#include "supervisor/core/facts/occupants.h"
#include "supervisor/core/facts/some_of.h"
#include "supervisor/core/job/job_core.h"
#include "supervisor/core/state/gang_life.h"
#include "supervisor/core/state/host_life.h"
#include "transport/base/assert.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

void JobCore::launch(HostId id) {
  HostState& state = host(id);
  to(state, HostPhase::kLaunching);
  state.launched_at = now_;
  state.name.clear();
  take_name(id);
  if (!is_in_queue(basis_, id)) state.deadline = now_ + launch_deadline(basis_);
  actions_.emplace_back(LaunchWorker{id});
}

void JobCore::on(const WorkerLaunchFailed& event) {
  if (!is_launching(host(event.host).phase)) return;
  if (event.failure.kind == LaunchFailureKind::kNotGranted) not_granted();
  host_failed(event.host, event.failure);
  destroy(event.host);  // something of it may run all the same
}

// Hosts on which it takes so long that only another one can be in time: no more of them are given up than there are
// others, and connected ones are taken first. Where there is no such haste, since the job runs or the late one is a
// spare, a host that is not connected counts only once the late one has had all of start_timeout; and no connected one
// is spent on a spare.
void JobCore::not_launched(std::vector<HostId> late) {
  std::size_t connected = 0;
  std::size_t more = 0;
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    const HostState& state = state_.hosts[i];
    if (!may_take(basis_, HostId(i)) || is_taken(basis_, HostId(i)) || state.doubted) continue;
    if (is_joined(state.phase)) ++connected;
    if (is_cold(state.phase) || is_launched(state.phase)) ++more;
    if (is_launching(state.phase) && state.deadline > now_) ++more;
  }
  for (std::size_t waiting = empty_slots(basis_).size(); waiting > 0 && connected + more > 0; --waiting) {
    --(connected > 0 ? connected : more);
  }
  std::stable_partition(late.begin(), late.end(), [this](HostId id) { return is_taken(basis_, id); });
  for (const HostId id : late) {
    host(id).deadline = now_ + kCallBackDeadline;  // there may be one by then
    const bool taken = is_taken(basis_, id);
    const bool in_haste = taken && state_.phase == JobPhase::kStarting;
    const bool had_all = now_ >= host(id).launched_at + spec_.start_timeout;
    if (taken && connected > 0) {
      --connected;
    } else if (more > 0 && (in_haste || had_all)) {
      --more;
    } else {
      continue;
    }
    host_failed(id, {.kind = LaunchFailureKind::kTimeout,
                     .phase = "launch",
                     .elapsed = now_ - host(id).launched_at,
                     .message = "no worker has started there, and another host can be had",
                     .words = {},
                     .again = {}});
    destroy(id);
  }
}

void JobCore::not_called_back(HostId id) {
  const HostState& state = host(id);
  const std::string where = state.control_endpoint.empty() ? std::string("the supervisor") : state.control_endpoint;
  const LaunchFacts& launch = spec_.launch.facts();
  const bool tunnelled = launch.tunnels && spec_.control.via == ControlVia::kSsh;
  const std::string_view hint =
      spec_.supervised_away()
          ? "; the supervisor is on the first host: may it be called there (control.address, control.ports)?"
      : tunnelled ? std::string_view()
                  : launch.no_call_back;
  host_failed(id, {.kind = LaunchFailureKind::kCallBack,
                   .phase = "call back",
                   .elapsed = now_ - state.launched_at,
                   .message = text("its worker runs, and has not reached ", where, " within ",
                                   to_text(call_back_deadline(basis_)), basis_.late_since(state.late_before), hint),
                   .words = {},
                   .again = state.call_back_again});
  destroy(id);
}

// It is out for good; the caller ends what may live there.
void JobCore::host_failed(HostId id, LaunchFailure failure) {
  const std::string& name = hosts_[id.value()].name;
  const bool missed = is_taken(basis_, id) && !replacement(basis_);
  JobEvent failed = event_of(EventKind::kHostFailed, missed ? Severity::kError : Severity::kWarning,
                             text(name, ": ", what_failed(failure)));
  failed.host = name;
  failed.details = {{"kind", name_of(failure.kind)},
                    {"phase", failure.phase},
                    {"elapsed", to_text(failure.elapsed)},
                    {"again", failure.again}};
  emit(std::move(failed));
  host(id).failure = std::move(failure);
  waits_due_ = true;
}

void JobCore::move_slot(std::uint32_t slot, HostId to, const std::string& rule) {
  const HostId from = state_.slots[slot];
  MONARCH_ASSERT_BECAUSE(!somebody_lives_on(state_, placement_, from),
                         "I3: whose host is taken away gets no lease and is not heard any longer");
  const std::optional<std::uint32_t> done = placement_.slot_on(to);
  MONARCH_ASSERT_BECAUSE(!done || !is_taken(basis_, to), "I18: nobody is moved to where others still run");
  if (done) state_.slots[*done] = from;  // nothing of it will need a host again, but by an operator
  state_.slots[slot] = to;
  placement_.put(state_.slots);
  const bool cold = is_cold(state_.hosts[to.value()].phase);
  JobEvent moved = event_of(EventKind::kHostReplaced, Severity::kWarning,
                            text(hosts_[to.value()].name, done ? ", where all has ended," : "", " takes the place of ",
                                 hosts_[from.value()].name, cold ? "; its worker is launched now" : "",
                                 rule.empty() ? std::string() : text(" [", rule, "]")));
  moved.host = hosts_[to.value()].name;
  moved.details = {{"replaces", hosts_[from.value()].name}, {"slot", text(slot)}};
  emit(std::move(moved));
  if (cold) launch(to);
  waits_due_ = true;
}

// Of gangs that waited for this slot nothing runs: what is held for them elsewhere is held for a generation that never
// starts.
void JobCore::give_up_reservations(std::uint32_t slot) {
  each_gang_on(state_.slots[slot], [&](MeshId m, GangId g) { give_up_reservation(m, g); });
}

void JobCore::give_up_reservation(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  if (!is_reserving(state.phase)) return;
  to(state, GangPhase::kWaiting);
  crews_.forget({mesh, g});
}

// A connected host that has fewer GPUs or cores than its ranks need is out, before anybody waits for it. What each has
// is known by then, so that all that lack something are named, whatever the others of their gang do.
void JobCore::check_inventory(std::uint32_t slot) {
  const HostId id = state_.slots[slot];
  if (!is_joined(host(id).phase) || !basis_.may_serve(id)) return;
  std::string lacking;
  each_gang_on(id, [&](MeshId m, GangId g) {
    const RankRange here = placement_.range_of(m, g, id);
    if (!lacking.empty()) return;
    const std::string what = resources_.lacking({m, Rank(here.first)}, host(id).inventory);
    if (!what.empty()) lacking = text("mesh ", mesh_spec(m).name, " ", what);
  });
  if (!lacking.empty()) host_lacks(id, lacking);
}

// Its worker runs, and ends before anything of the job starts there.
void JobCore::host_lacks(HostId id, const std::string& what) {
  host_failed(id, lack_of(basis_, id, what));
  destroy(id);
}

// Every slot on a host that serves, and as many spares as the spec asks for, while the pool has hosts.
void JobCore::fill_slots() {
  if (state_.phase == JobPhase::kNew || basis_.starts_nothing()) return;
  recall_lemons(std::nullopt);
  for (std::uint32_t slot = 0; slot < state_.slots.size(); ++slot) {
    if (has_started(basis_, slot)) {
      refill_slot(slot);
      if (state_.phase > JobPhase::kRunning) return;  // nobody was left for it
      continue;
    }
    check_inventory(slot);
    while (!basis_.may_serve(state_.slots[slot])) {
      const auto next = replacement(basis_);
      // Its own host, which ended while an operator wanted nothing there.
      if (is_free_to_launch(basis_, state_.slots[slot]) && !(next && basis_.may_serve(*next))) {
        launch(state_.slots[slot]);
        break;
      }
      if (!next) break;  // its gang's other hosts still answer whether they hold what it needs there
      if (host(*next).doubted) break;
      give_up_reservations(slot);
      move_slot(slot, *next);
      check_inventory(slot);
    }
  }
  if (state_.phase == JobPhase::kStarting && !empty_slots(basis_).empty()) return check_slots();
  regrow();
  // Of hosts that are to serve again.
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    if (!is_to_end(basis_, HostId(i))) last_words_.no_haste(HostId(i));
  }
  give_back_idle();
  end_drained();
  if (state_.phase == JobPhase::kStarting || may_reallocate(basis_)) keep_spares();
}

void JobCore::check_slots() {
  bool open =
      std::any_of(state_.hosts.begin(), state_.hosts.end(), [](const HostState& state) { return is_coming(state); });
  open = open || replacement(basis_);  // one that is suspected
  each_gang([&](MeshId m, GangId g) {
    if (!is_reserving(gang(m, g).phase)) return;
    for (const HostId id : placement_.hosts_of(m, g)) {
      open = open || (basis_.may_serve(id) && !basis_.crew(m, g).ports[*placement_.index_in_gang(m, g, id)].held);
    }
  });
  if (!open) end_.fail(blame_hosts(basis_));
}

}  // namespace monarch
