// Slots: which host each is on. Until a gang of it has started, a slot whose host is out goes to a spare, or to a cold host of the
// pool; with none left the job fails, as soon as it is known of every other host whether it starts, so that all are named.

#include <algorithm>

#include "supervisor/core/job_core.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr int kExitHostKey = 3;
constexpr int kExitUnreachable = 69;

// From the worker's key to its hello: two round trips, on a machine that may be busy starting.
constexpr Duration kCallBackDeadline = Duration::seconds(20);

constexpr std::size_t kMostNamed = 8;
// Of a verdict, which has to fit into a record of the journal with the last lines of a rank; more are counted.
constexpr std::size_t kFailuresBytes = 20U << 10U;

bool is_coming(HostPhase phase) { return phase == HostPhase::kLaunching || phase == HostPhase::kLaunched; }

std::string what_failed(const LaunchFailure& failure) {
  const std::string when =
      failure.phase.empty() ? std::string() : text(" (", failure.phase, ", after ", to_text(failure.elapsed), ")");
  return text(name_of(failure.kind), when, ": ", printable(failure.message));
}

}  // namespace

bool JobCore::may_serve(HostId id) const {
  const HostState& state = state_.hosts[id.value()];
  return is_coming(state.phase) || (state.phase == HostPhase::kJoined && !state.wedged && !state.shutdown_told);
}

void JobCore::launch(HostId id) {
  HostState& state = host(id);
  MONARCH_ASSERT_BECAUSE(state.phase == HostPhase::kCold, "I19: a host is launched once");
  state.phase = HostPhase::kLaunching;
  state.launched_at = now_;
  actions_.emplace_back(LaunchWorker{id});
}

// How long its worker may take to say hello.
Duration JobCore::call_back_deadline() const { return std::min(spec_.start_timeout, kCallBackDeadline); }

void JobCore::on(const WorkerLaunchFailed& event) {
  if (host(event.host).phase != HostPhase::kLaunching) return;
  host_failed(event.host, event.failure);
  destroy(event.host);  // something of it may run all the same
}

void JobCore::not_called_back(HostId id) {
  const HostState& state = host(id);
  const std::string where = state.control_endpoint.empty() ? std::string("the supervisor") : state.control_endpoint;
  host_failed(
      id, {.kind = LaunchFailureKind::kCallBack,
           .phase = "call back",
           .elapsed = now_ - state.launched_at,
           .message = text("its worker runs, and has not reached ", where, " within ", to_text(call_back_deadline())),
           .words = {},
           .again = state.call_back_again});
  destroy(id);
}

// It is out for good; the caller ends what may live there.
void JobCore::host_failed(HostId id, LaunchFailure failure) {
  const std::string& name = hosts_[id.value()].name;
  const bool missed = placement_.holds_ranks(id) && !replacement();
  JobEvent failed =
      event_of("host.failed", missed ? Severity::kError : Severity::kWarning, text(name, ": ", what_failed(failure)));
  failed.host = name;
  failed.details = {{"kind", name_of(failure.kind)},
                    {"phase", failure.phase},
                    {"elapsed", to_text(failure.elapsed)},
                    {"again", failure.again}};
  emit(std::move(failed));
  host(id).failure = std::move(failure);
  slots_due_ = true;
}

// Has a gang with ranks in it started, in any generation? Then its ranks stay where they are, whatever becomes of the host.
bool JobCore::has_started(std::uint32_t slot) const {
  const HostId where = state_.slots[slot];
  for (std::uint32_t m = 0; m < state_.meshes.size(); ++m) {
    for (std::uint32_t g = 0; g < state_.meshes[m].gangs.size(); ++g) {
      const GangPhase phase = state_.meshes[m].gangs[g].phase;
      if (phase == GangPhase::kWaiting || phase == GangPhase::kReserving) continue;
      if (placement_.range_of(MeshId(m), GangId(g), where).count > 0) return true;
    }
  }
  return false;
}

// A connected spare before one that is on its way, and that before a cold host.
std::optional<HostId> JobCore::replacement() const {
  std::optional<HostId> best;
  const auto place = [this](HostId id) {
    switch (state_.hosts[id.value()].phase) {
      case HostPhase::kJoined: return 0;
      case HostPhase::kLaunched: return 1;
      case HostPhase::kLaunching: return 2;
      case HostPhase::kCold: return 3;
      case HostPhase::kDestroying:
      case HostPhase::kEnded:
      case HostPhase::kLost: break;
    }
    return 4;
  };
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    const HostId id(i);
    const bool fit = may_serve(id) || state_.hosts[i].phase == HostPhase::kCold;
    if (!fit || placement_.holds_ranks(id)) continue;
    if (!best || place(id) < place(*best)) best = id;
  }
  return best;
}

void JobCore::move_slot(std::uint32_t slot, HostId to) {
  const HostId from = state_.slots[slot];
  state_.slots[slot] = to;
  placement_.put(state_.slots);
  const bool cold = state_.hosts[to.value()].phase == HostPhase::kCold;
  JobEvent moved = event_of("host.replaced", Severity::kWarning,
                            text(hosts_[to.value()].name, " takes the place of ", hosts_[from.value()].name,
                                 cold ? "; its worker is launched now" : ""));
  moved.host = hosts_[to.value()].name;
  moved.details = {{"replaces", hosts_[from.value()].name}, {"slot", text(slot)}};
  emit(std::move(moved));
  if (cold) launch(to);
  starts_due_ = true;
}

// Of gangs that waited for this slot nothing runs: what is held for them elsewhere is held for a generation that never starts.
void JobCore::give_up_reservations(std::uint32_t slot) {
  each_gang([&](MeshId m, GangId g) {
    GangState& state = gang(m, g);
    if (state.phase != GangPhase::kReserving) return;
    if (placement_.range_of(m, g, state_.slots[slot]).count == 0) return;
    state.phase = GangPhase::kWaiting;
    state.ports.clear();
  });
}

// Every slot on a host that serves, and as many spares as the spec asks for, while the pool has hosts.
void JobCore::fill_slots() {
  if (state_.phase != JobPhase::kStarting) return;
  for (std::uint32_t slot = 0; slot < state_.slots.size(); ++slot) {
    if (may_serve(state_.slots[slot]) || has_started(slot)) continue;
    give_up_reservations(slot);
    if (const auto next = replacement()) move_slot(slot, *next);
  }
  if (!empty_slots().empty()) return check_slots();
  std::uint32_t spares = 0;
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    spares += may_serve(HostId(i)) && !placement_.holds_ranks(HostId(i)) ? 1U : 0U;
  }
  for (std::uint32_t i = 0; i < state_.hosts.size() && spares < spec_.spares(); ++i) {
    if (state_.hosts[i].phase != HostPhase::kCold) continue;
    launch(HostId(i));
    ++spares;
  }
}

// Slots that no host is left for. Once there is one there always will be: hosts that are out do not come back.
std::vector<std::uint32_t> JobCore::empty_slots() const {
  std::vector<std::uint32_t> empty;
  for (std::uint32_t slot = 0; slot < state_.slots.size(); ++slot) {
    if (!may_serve(state_.slots[slot]) && !has_started(slot)) empty.push_back(slot);
  }
  return empty;
}

void JobCore::check_slots() {
  const bool open = std::any_of(state_.hosts.begin(), state_.hosts.end(),
                                [](const HostState& state) { return is_coming(state.phase); });
  if (!open) fail_job(blame_hosts());
}

Verdict JobCore::blame_hosts() const {
  const std::vector<std::uint32_t> empty = empty_slots();
  MONARCH_ASSERT(!empty.empty());
  const HostId first = state_.slots[empty.front()];
  std::vector<std::string> names;
  std::size_t failed = 0;
  bool only_keys = true;
  for (std::size_t i = 0; i < state_.hosts.size(); ++i) {
    const auto& failure = state_.hosts[i].failure;
    if (!failure) continue;
    only_keys = only_keys && is_host_key(failure->kind);
    if (++failed <= kMostNamed) names.push_back(hosts_[i].name);
  }
  Verdict verdict;
  verdict.exit_code = only_keys ? kExitHostKey : kExitUnreachable;
  FirstCause& cause = verdict.cause;
  cause.kind = CauseKind::kStart;
  cause.host = hosts_[first.value()].name;
  const auto& failure = state_.hosts[first.value()].failure;
  MONARCH_ASSERT_BECAUSE(failure.has_value(), "a host that does not serve has failed");
  const std::size_t unnamed = failed - names.size();
  cause.summary = failed == 1 ? text("no worker on ", cause.host, ": ", what_failed(*failure))
                              : text(failed, " hosts did not start (", join(names, ", "),
                                     unnamed > 0 ? text(" and ", unnamed, " more") : "", "); ", cause.host, ": ",
                                     what_failed(*failure));
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
