// Slots: which host each is on. Until a gang of it has started, a slot whose host is out goes to a spare, or to a cold
// host of the pool, and no budget is spent; with none left the job fails, as soon as it is known of every other host
// whether it starts, so that all are named.

#include <algorithm>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/job/occupants.h"
#include "supervisor/core/job/some_of.h"
#include "supervisor/core/state/gang_life.h"
#include "supervisor/core/state/host_life.h"
#include "transport/base/assert.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// From the worker's key to its hello: two round trips, on a machine that may be busy starting.
constexpr Duration kCallBackDeadline = Duration::seconds(20);

// Of a verdict, which has to fit into a record of the journal with the last lines of a rank; more are counted.
constexpr std::size_t kFailuresBytes = 20U << 10U;

// It did not fail: somebody wanted nothing there.
Verdict blame_left_host(const std::string& name, const std::string& why) {
  Verdict verdict;
  verdict.exit_code = kExitUnreachable;
  FirstCause& cause = verdict.cause;
  cause.kind = CauseKind::kStart;
  cause.host = name;
  cause.summary = text("host ", name, " is ", why.empty() ? "out" : why, ", and no other host is left");
  cause.rule = "host does not serve: a spare or a cold host; none is left: fail";
  verdict.reason = cause.summary;
  return verdict;
}

}  // namespace

void JobCore::launch(HostId id) {
  HostState& state = host(id);
  to(state, HostPhase::kLaunching);
  state.launched_at = now_;
  state.name.clear();
  take_name(id);
  if (!is_in_queue(id)) state.deadline = now_ + launch_deadline();
  actions_.emplace_back(LaunchWorker{id});
}

// How long its worker may take to start: another host's needs the rest of start_timeout.
Duration JobCore::launch_deadline() const {
  return std::max(spec_.start_timeout / 2, spec_.start_timeout - kCallBackDeadline);
}

// How long its worker may take to say hello.
Duration JobCore::call_back_deadline() const { return std::min(spec_.start_timeout, kCallBackDeadline); }

void JobCore::on(const WorkerLaunchFailed& event) {
  if (host(event.host).phase != HostPhase::kLaunching) return;
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
    if (!may_take(HostId(i)) || is_taken(HostId(i)) || state.doubted) continue;
    if (state.phase == HostPhase::kJoined) ++connected;
    if (state.phase == HostPhase::kCold || state.phase == HostPhase::kLaunched) ++more;
    if (state.phase == HostPhase::kLaunching && state.deadline > now_) ++more;
  }
  for (std::size_t waiting = empty_slots().size(); waiting > 0 && connected + more > 0; --waiting) {
    --(connected > 0 ? connected : more);
  }
  std::stable_partition(late.begin(), late.end(), [this](HostId id) { return is_taken(id); });
  for (const HostId id : late) {
    host(id).deadline = now_ + kCallBackDeadline;  // there may be one by then
    const bool taken = is_taken(id);
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
                                   to_text(call_back_deadline()), basis_.late_since(state.late_before), hint),
                   .words = {},
                   .again = state.call_back_again});
  destroy(id);
}

// It is out for good; the caller ends what may live there.
void JobCore::host_failed(HostId id, LaunchFailure failure) {
  const std::string& name = hosts_[id.value()].name;
  const bool missed = is_taken(id) && !replacement();
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

// Has a gang with ranks in it started, in any generation? Then its ranks stay where they are, whatever becomes of the
// host.
bool JobCore::has_started(std::uint32_t slot) const {
  const HostId where = state_.slots[slot];
  for (std::uint32_t m = 0; m < state_.meshes.size(); ++m) {
    const GangRange here = placement_.gangs_on(MeshId(m), where);
    for (std::uint32_t g = here.first; g < here.first + here.count; ++g) {
      const GangState& gang = state_.meshes[m].gangs[g];
      const bool waits = gang.phase == GangPhase::kWaiting || gang.phase == GangPhase::kReserving;
      if (!waits || recovers(gang)) return true;
    }
  }
  return false;
}

// A connected spare before one that is on its way, and that before a cold host; of connected ones, those that are
// prepared first, and those where a standby gang waits last. Of two alike, a spare before a host on which all has
// ended. One that is suspected comes after all: whoever would get it waits, for it is heard again or lost soon.
std::optional<HostId> JobCore::replacement() const {
  std::optional<HostId> best;
  const auto place = [this](HostId id) {
    const HostState& state = state_.hosts[id.value()];
    switch (state.phase) {
      case HostPhase::kJoined: return state.doubted ? 7 : order_of_spare(id);
      case HostPhase::kLaunched: return 4;
      case HostPhase::kLaunching: return 5;
      case HostPhase::kCold: return 6;
      case HostPhase::kDestroying: return 5;  // it is launched again
      case HostPhase::kEnded:
      case HostPhase::kLost: break;
    }
    return 8;
  };
  const auto order = [&](HostId id) { return std::pair(place(id), placement_.holds_ranks(id)); };
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    const HostId id(i);
    if (!may_take(id) || is_taken(id)) continue;
    if (!best || order(id) < order(*best)) best = id;
  }
  return best;
}

void JobCore::move_slot(std::uint32_t slot, HostId to, const std::string& rule) {
  const HostId from = state_.slots[slot];
  MONARCH_ASSERT_BECAUSE(!somebody_lives_on(state_, placement_, from),
                         "I3: whose host is taken away gets no lease and is not heard any longer");
  const std::optional<std::uint32_t> done = placement_.slot_on(to);
  MONARCH_ASSERT_BECAUSE(!done || !is_taken(to), "I18: nobody is moved to where others still run");
  if (done) state_.slots[*done] = from;  // nothing of it will need a host again, but by an operator
  state_.slots[slot] = to;
  placement_.put(state_.slots);
  const bool cold = state_.hosts[to.value()].phase == HostPhase::kCold;
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
  if (state.phase != GangPhase::kReserving) return;
  to(state, GangPhase::kWaiting);
  crews_.forget({mesh, g});
}

// A connected host that has fewer GPUs or cores than its ranks need is out, before anybody waits for it. What each has
// is known by then, so that all that lack something are named, whatever the others of their gang do.
void JobCore::check_inventory(std::uint32_t slot) {
  const HostId id = state_.slots[slot];
  if (host(id).phase != HostPhase::kJoined || !may_serve(id)) return;
  std::string lacking;
  each_gang_on(id, [&](MeshId m, GangId g) {
    const RankRange here = placement_.range_of(m, g, id);
    if (!lacking.empty()) return;
    const std::string what = resources_.lacking({m, Rank(here.first)}, host(id).inventory);
    if (!what.empty()) lacking = text("mesh ", mesh_spec(m).name, " ", what);
  });
  if (!lacking.empty()) host_lacks(id, lacking);
}

LaunchFailure JobCore::lack_of(HostId id, const std::string& what) const {
  return {.kind = LaunchFailureKind::kResources,
          .phase = "reserve",
          .elapsed = now_ - state_.hosts[id.value()].launched_at,
          .message = what,
          .words = {},
          .again = {}};
}

// Its worker runs, and ends before anything of the job starts there.
void JobCore::host_lacks(HostId id, const std::string& what) {
  host_failed(id, lack_of(id, what));
  destroy(id);
}

// Every slot on a host that serves, and as many spares as the spec asks for, while the pool has hosts.
void JobCore::fill_slots() {
  if (state_.phase == JobPhase::kNew || starts_nothing()) return;
  recall_lemons(std::nullopt);
  for (std::uint32_t slot = 0; slot < state_.slots.size(); ++slot) {
    if (has_started(slot)) {
      refill_slot(slot);
      if (state_.phase > JobPhase::kRunning) return;  // nobody was left for it
      continue;
    }
    check_inventory(slot);
    while (!may_serve(state_.slots[slot])) {
      const auto next = replacement();
      // Its own host, which ended while an operator wanted nothing there.
      if (is_free_to_launch(state_.slots[slot]) && !(next && may_serve(*next))) {
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
  if (state_.phase == JobPhase::kStarting && !empty_slots().empty()) return check_slots();
  regrow();
  forget_wishes();
  give_back_idle();
  end_drained();
  if (state_.phase == JobPhase::kStarting || may_reallocate()) keep_spares();
}

// Slots that no host is left for. Once there is one there will be for long: only an operator brings hosts back that are
// out.
std::vector<std::uint32_t> JobCore::empty_slots() const {
  std::vector<std::uint32_t> empty;
  for (std::uint32_t slot = 0; slot < state_.slots.size(); ++slot) {
    if (!may_serve(state_.slots[slot]) && !has_started(slot)) empty.push_back(slot);
  }
  return empty;
}

void JobCore::check_slots() {
  bool open =
      std::any_of(state_.hosts.begin(), state_.hosts.end(), [](const HostState& state) { return is_coming(state); });
  open = open || replacement();  // one that is suspected
  each_gang([&](MeshId m, GangId g) {
    if (gang(m, g).phase != GangPhase::kReserving) return;
    for (const HostId id : placement_.hosts_of(m, g)) {
      open = open || (may_serve(id) && !crew(m, g).ports[*placement_.index_in_gang(m, g, id)].held);
    }
  });
  if (!open) fail_job(blame_hosts());
}

Verdict JobCore::blame_hosts() const {
  const std::vector<std::uint32_t> empty = empty_slots();
  MONARCH_ASSERT(!empty.empty());
  const HostId first = state_.slots[empty.front()];
  const auto& failure = state_.hosts[first.value()].failure;
  if (!failure) return blame_left_host(hosts_[first.value()].name, state_.hosts[first.value()].lost_because);
  std::vector<std::string> names, kinds;
  std::size_t failed = 0;
  bool only_keys = true;
  bool only_lack = true;
  bool alike = true;
  for (std::size_t i = 0; i < state_.hosts.size(); ++i) {
    const auto& other = state_.hosts[i].failure;
    if (!other) continue;
    only_keys = only_keys && is_host_key(other->kind);
    only_lack = only_lack && other->kind == LaunchFailureKind::kResources;
    alike = alike && other->kind == failure->kind && other->message == failure->message;
    if (++failed > kMostNamed) continue;
    names.push_back(hosts_[i].name);
    kinds.push_back(text(hosts_[i].name, " (", name_of(other->kind), ")"));
  }
  Verdict verdict;
  verdict.exit_code = only_keys ? kExitHostKey : kExitUnreachable;
  FirstCause& cause = verdict.cause;
  cause.kind = CauseKind::kStart;
  cause.host = hosts_[first.value()].name;
  const std::string more = failed > names.size() ? text(" and ", failed - names.size(), " more") : "";
  if (failed == 1) {
    cause.summary = only_lack ? text(cause.host, ": ", printable(failure->message))
                              : text("no worker on ", cause.host, ": ", what_failed(*failure));
  } else if (only_lack) {
    cause.summary = text(failed, " hosts lack what they need (", join(names, ", "), more, "); ", cause.host, ": ",
                         printable(failure->message));
  } else if (alike) {
    cause.summary = text(failed, " hosts did not start (", join(names, ", "), more, "): ", printable(failure->message));
  } else {  // what each of them says is in the table of failed hosts, and in its event
    cause.summary = text(failed, " hosts did not start: ", join(kinds, ", "), more);
  }
  cause.rule = "host does not start: a spare or a cold host; none is left: fail";
  verdict.reason = cause.summary;
  return verdict;
}

// For the screen and verdict.json: whatever the job ended with.
void JobCore::tell_failed_hosts(Verdict& verdict) const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < state_.hosts.size(); ++i) {
    const auto& failure = state_.hosts[i].failure;
    if (!failure) continue;
    HostFailure told{.host = hosts_[i].name,
                     .kind = name_of(failure->kind),
                     .phase = failure->phase,
                     .elapsed_milliseconds = failure->elapsed.count_milliseconds(),
                     .message = failure->message,
                     .again = failure->again};
    bytes += told.host.size() + told.kind.size() + told.phase.size() + told.message.size() + told.again.size() + 32;
    if (bytes <= kFailuresBytes) {
      verdict.failed_hosts.push_back(std::move(told));
    } else {
      ++verdict.failed_hosts_untold;
    }
  }
}

}  // namespace monarch
