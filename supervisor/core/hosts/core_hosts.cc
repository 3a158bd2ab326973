#include "supervisor/core/hosts/core_hosts.h"

#include <algorithm>
#include <utility>

#include "supervisor/core/facts/slots.h"
#include "supervisor/core/health/fence.h"
#include "supervisor/core/recovery/restart_budget.h"
#include "supervisor/core/state/host_life.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"
#include "transport/messages/launch.h"
#include "transport/messages/vault.h"
#include "transport/messages/worker.h"

namespace monarch {

namespace {

// From SHUTDOWN to the worker's end, before it is destroyed; and from that order until the host is given up.
constexpr Duration kShutdownDeadline = Duration::seconds(10);
constexpr Duration kDestroyDeadline = Duration::seconds(10);

bool can_report(HostPhase phase) { return is_launched(phase) || is_joined(phase); }

}  // namespace

void CoreHosts::on(const WorkerLaunched& event) {
  HostState& state = host(event.host);
  if (!is_launching(state.phase)) return;  // destroyed meanwhile: its key is not let in
  to(state, HostPhase::kLaunched);
  state.public_key = event.worker.reply.public_key;
  state.keeper_pid = event.worker.reply.keeper_pid;
  state.daemon_starts = 0;
  state.inventory = event.worker.reply.inventory;
  state.address = event.worker.reply.host_address;
  state.log_directory = event.worker.reply.log_directory;
  names_.learn_address(event.host);
  state.control_endpoint = event.worker.control_endpoint;
  state.bulk_endpoint = event.worker.bulk_endpoint;
  state.call_back_again = event.worker.again;
  state.answered_at = basis_.now;
  state.times = event.worker.times;
  state.deadline = basis_.now + call_back_deadline(basis_);
  state.late_before = basis_.state.late;
  if (basis_.state.phase == JobPhase::kShuttingDown) destroy(event.host);
}

void CoreHosts::on(const WorkerJoined& event) {
  HostState& state = host(event.host);
  if (!can_report(state.phase)) return;
  state.incarnation = event.incarnation;
  state.doubted = false;
  if (is_launched(state.phase)) {
    to(state, HostPhase::kJoined);
    state.deadline = Instant::never();
    basis_.waits_due = true;
    const std::string& name = basis_.name_of(event.host);
    JobEvent ready =
        basis_.event(EventKind::kHostReady, Severity::kInfo,
                     text(name, ": worker is connected", where_time_went(state.times, basis_.now - state.answered_at)));
    ready.host = name;
    ready.details = launch_details(state.times, basis_.now - state.answered_at);
    ready.pid = state.keeper_pid;
    basis_.emit(std::move(ready));
  }
  if (basis_.state.phase == JobPhase::kShuttingDown) shut_down();
  basis_.waits_due = true;
}

void CoreHosts::on(const WorkerEnded& event) {
  HostState& state = host(event.host);
  switch (state.phase) {
    case HostPhase::kCold:
      state.unproven = false;  // given up before, and free to be launched again
      return;
    case HostPhase::kEnded: return;  // reported before; the launcher may say it again to a supervisor that came back
    case HostPhase::kDestroying:
    case HostPhase::kLost: break;
    case HostPhase::kLaunching:
    case HostPhase::kLaunched:
      failed(event.host, {.kind = LaunchFailureKind::kExec,
                          .phase = is_launched(state.phase) ? "call back" : "start",
                          .elapsed = basis_.now - state.launched_at,
                          .message = text("its worker ended: ", event.how),
                          .words = {},
                          .again = {}});
      break;
    case HostPhase::kJoined: break;
  }
  const bool by_itself = is_joined(state.phase) && !state.shutdown_told;
  const bool known = std::exchange(state.failing, false);
  state.doubted = false;
  to(state, HostPhase::kEnded);
  state.deadline = Instant::never();
  state.fence = Instant{};  // proof: nothing of it acts any longer
  state.unproven = false;
  basis_.waits_due = true;
  if (std::exchange(state.launch_again, false) && !basis_.starts_nothing()) {
    to(state, HostPhase::kCold);
    return launch(event.host);
  }
  const std::string why = text("its worker ended unexpectedly: ", event.how);
  if (by_itself && !known) lose(event.host, why);
  if (by_itself && known) {
    state.lost_because = why;  // more than its daemon could know
    news_.push_back({.what = HostNews::What::kDecides, .host = event.host, .within = cause_window(basis_)});
  }
  let_return(event.host, by_itself);
  news_.push_back({.what = HostNews::What::kGone, .host = event.host});
  if (std::exchange(state.wanted, false)) become_cold(event.host);  // whatever the budgets say
}

// Before its ranks' peers miss them: they are not the cause. What is done about it is decided with the worker's end, at
// once or soon.
void CoreHosts::on(const WorkerFailing& event) {
  HostState& state = host(event.host);
  if (!is_joined(state.phase) || state.shutdown_told || state.failing) return;
  lose(event.host, "its keeper ended unexpectedly, and what runs there is being killed");
  state.failing = true;
  news_.push_back({.what = HostNews::What::kDecides, .host = event.host, .within = kDestroyDeadline});
}

// Once for each start, whichever supervisor hears of it.
void CoreHosts::on(const DaemonStarted& event) {
  HostState& state = host(event.host);
  if (!can_report(state.phase) || event.start <= state.daemon_starts) return;
  state.daemon_starts = event.start;
  const std::string& name = basis_.name_of(event.host);
  JobEvent started = basis_.event(EventKind::kHostDaemon, Severity::kWarning,
                                  text(name, ": its daemon had ended, and its keeper has started it again (start ",
                                       event.start, "); its ranks go on"));
  started.host = name;
  started.details = {{"start", text(event.start)}};
  basis_.emit(std::move(started));
}

void CoreHosts::on(const HostSilent& event) {
  // Before it has joined nothing is expected of it but its hello, which has a deadline of its own.
  if (!is_joined(host(event.host).phase)) return;
  host(event.host).fence = std::max(host(event.host).fence, event.grants_until);
  lose(event.host, text("silent for ", to_text(event.silence)), event.silence);
  destroy(event.host);
  news_.push_back({.what = HostNews::What::kGone, .host = event.host});
}

void CoreHosts::on(const HostDoubted& event) {
  if (!is_joined(host(event.host).phase)) return;
  host(event.host).doubted = !event.heard_again;
  if (event.heard_again) basis_.waits_due = true;  // somebody may have waited for it
  const std::string& name = basis_.name_of(event.host);
  JobEvent doubt =
      event.heard_again
          ? basis_.event(EventKind::kHostHeard, Severity::kInfo, text(name, ": heard again"))
          : basis_.event(EventKind::kHostSuspect, Severity::kWarning,
                         text(name, ": silent for ", to_text(event.silence), "; nothing is stopped, it is lost after ",
                              to_text(basis_.spec.supervision.lost_after)));
  doubt.host = name;
  if (!event.heard_again) {
    doubt.details = {{"silent_ms", text(event.silence.count_milliseconds())}};
    drills_.add_loss(doubt, event.host);
  }
  basis_.emit(std::move(doubt));
}

void CoreHosts::lose(HostId id, const std::string& why, std::optional<Duration> silence) {
  const std::string& name = basis_.name_of(id);
  if (!host(id).failing) {
    host(id).lost_because = why;
    JobEvent lost = basis_.event(EventKind::kHostLost, Severity::kError, text(name, ": ", why));
    lost.host = name;
    lost.details = {{"why", why}};
    if (silence) lost.details.emplace_back("silent_ms", text(silence->count_milliseconds()));
    drills_.add_loss(lost, id);
    basis_.emit(std::move(lost));
    const bool counts = host(id).standing == HostStanding::kGood && !drills_.is_own_blow(id);
    drills_.lost(id);
    if (counts) {
      forget_older(host(id).lost_at, basis_.spec.supervision.reallocate.window, basis_.now);
      host(id).lost_at.push_back(basis_.now);
    }
  }
  recall_lemons(id);
  const std::optional<std::uint32_t> slot = basis_.placement.slot_on(id);
  if (basis_.state.phase == JobPhase::kStarting && !(slot && has_started(basis_, *slot))) {
    host(id).failure = LaunchFailure{.kind = LaunchFailureKind::kOther,
                                     .phase = "connected",
                                     .elapsed = basis_.now - host(id).launched_at,
                                     .message = why,
                                     .words = {},
                                     .again = {}};
  }
  basis_.waits_due = true;
  news_.push_back({.what = HostNews::What::kLost, .host = id, .silence = silence});
}

// It beats, and does not end what it was told to end. What else lives there ends with it: those gangs lose their host.
void CoreHosts::give_up(HostId id) {
  if (basis_.state.phase <= JobPhase::kRunning && is_joined(host(id).phase)) {
    const Supervision& supervision = basis_.spec.supervision;
    const Duration longest = std::max(supervision.lease, supervision.orphan_ttl);
    host(id).fence = std::max(host(id).fence, fence_of(basis_.now, longest));
    lose(id, "it does not end ranks that it was told to end");
  }
  destroy(id);
}

void CoreHosts::wedged(const RankChanged& event, const std::string& who) {
  HostState& state = host(event.host);
  state.fence = std::max(state.fence, event.grants_until);
  basis_.waits_due = true;
  if (std::exchange(state.wedged, true)) return;
  const std::string& name = basis_.name_of(event.host);
  JobEvent wedged = basis_.event(EventKind::kHostWedged, Severity::kError,
                                 text(name, ": ", who, " (pid ", event.report.pid, ") does not end after SIGKILL"));
  wedged.host = name;
  wedged.pid = event.report.pid;
  basis_.emit(std::move(wedged));
}

void CoreHosts::destroy(HostId id) {
  HostState& state = host(id);
  switch (state.phase) {
    case HostPhase::kCold:
    case HostPhase::kEnded:
    case HostPhase::kLost: return;
    case HostPhase::kLaunching:
    case HostPhase::kLaunched:
    case HostPhase::kJoined:
    case HostPhase::kDestroying: break;
  }
  to(state, HostPhase::kDestroying);
  state.failing = false;
  state.doubted = false;
  state.launch_again = false;
  state.deadline = basis_.now + kDestroyDeadline;
  basis_.actions.emplace_back(DestroyWorker{id});
}

void CoreHosts::shut_down() {
  for (std::uint32_t i = 0; i < mine_.size(); ++i) {
    HostState& state = mine_[i];
    const HostId id(i);
    switch (state.phase) {
      case HostPhase::kCold:
      case HostPhase::kDestroying:
      case HostPhase::kEnded:
      case HostPhase::kLost: break;
      case HostPhase::kLaunching:
      case HostPhase::kLaunched: destroy(id); break;  // there is no link to say it over
      case HostPhase::kJoined:
        if (basis_.state.kill_ordered && state.wedged) {
          destroy(id);
        } else if (!state.shutdown_told) {
          state.shutdown_told = true;
          state.deadline = basis_.now + kShutdownDeadline + vault_memory_patience(basis_.spec.checkpoints.memory);
          basis_.actions.emplace_back(SendShutdown{id, Shutdown{.reason = basis_.state.verdict->reason}});
        }
        break;
    }
  }
}

void CoreHosts::look_at_time(HostId id) {
  HostState& state = host(id);
  if (is_out(state.phase) && state.cold_at <= basis_.now) become_cold(id);
  if (state.deadline > basis_.now) return;
  if (is_destroying(state.phase)) {
    to(state, HostPhase::kLost);
    state.deadline = Instant::never();
    state.unproven = true;
    basis_.waits_due = true;
    not_launched_again(id);
    let_return(id, false);
    news_.push_back({.what = HostNews::What::kGone, .host = id});
  } else if (is_launched(state.phase)) {
    not_called_back(id);
  } else if (is_launching(state.phase)) {
    late_.push_back(id);
  } else {
    destroy(id);
  }
}

void CoreHosts::returned() {
  for (std::uint32_t i = 0; i < mine_.size(); ++i) {
    HostState& host = mine_[i];
    host.shutdown_told = false;
    host.doubted = false;                               // all have until now
    host.cold_at = std::max(host.cold_at, host.fence);  // which the clock of another boot may have moved
    switch (host.phase) {
      case HostPhase::kCold:
      case HostPhase::kJoined:
      case HostPhase::kEnded:
      case HostPhase::kLost: break;
      case HostPhase::kLaunched:
        host.deadline = basis_.now + call_back_deadline(basis_);
        host.late_before = basis_.state.late;
        break;
      case HostPhase::kLaunching: {
        // Its key was on the way to the supervisor that is gone, and can never be let in: it is ended, and launched
        // once more.
        const bool wanted = !basis_.starts_nothing();
        destroy(HostId(i));
        host.launch_again = wanted;
        break;
      }
      case HostPhase::kDestroying: {
        const bool again = host.launch_again;
        destroy(HostId(i));  // the order may never have left
        host.launch_again = again;
        break;
      }
    }
  }
  if (basis_.state.phase == JobPhase::kShuttingDown) shut_down();
}

HostState& CoreHosts::host(HostId id) {
  MONARCH_ASSERT(id.value() < mine_.size());
  return mine_[id.value()];
}

}  // namespace monarch
