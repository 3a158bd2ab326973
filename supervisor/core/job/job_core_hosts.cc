// Hosts: from the launch of a worker to its proven end; and what a beat shows to be missing.

#include <algorithm>
#include <utility>

#include "supervisor/core/health/fence.h"
#include "supervisor/core/job/job_core.h"
#include "supervisor/core/recovery/restart_budget.h"
#include "supervisor/core/state/host_life.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"
#include "transport/messages/launch.h"
#include "transport/messages/rank.h"
#include "transport/messages/vault.h"
#include "transport/messages/viewer.h"
#include "transport/messages/worker.h"

namespace monarch {

namespace {

// From SHUTDOWN to the worker's end, before it is destroyed; and from that order until the host is given up.
constexpr Duration kShutdownDeadline = Duration::seconds(10);
constexpr Duration kDestroyDeadline = Duration::seconds(10);

bool can_report(HostPhase phase) { return is_launched(phase) || is_joined(phase); }

}  // namespace

void JobCore::on(const WorkerLaunched& event) {
  HostState& state = host(event.host);
  if (!is_launching(state.phase)) return;  // destroyed meanwhile: its key is not let in
  to(state, HostPhase::kLaunched);
  state.public_key = event.worker.reply.public_key;
  state.keeper_pid = event.worker.reply.keeper_pid;
  state.daemon_starts = 0;
  state.inventory = event.worker.reply.inventory;
  state.address = event.worker.reply.host_address;
  state.log_directory = event.worker.reply.log_directory;
  learn_address(event.host);
  state.control_endpoint = event.worker.control_endpoint;
  state.bulk_endpoint = event.worker.bulk_endpoint;
  state.call_back_again = event.worker.again;
  state.answered_at = now_;
  state.times = event.worker.times;
  state.deadline = now_ + call_back_deadline(basis_);
  state.late_before = state_.late;
  if (state_.phase == JobPhase::kShuttingDown) destroy(event.host);
}

// Ranks get it as an address; what cannot be one is none.
void JobCore::learn_address(HostId id) {
  constexpr std::size_t kLongest = 64;
  const std::string& told = state_.hosts[id.value()].address;
  const bool may_be_one =
      told.size() <= kLongest && told.find_first_not_of("0123456789abcdefABCDEF.:%") == std::string::npos;
  if (hosts_[id.value()].address.empty() && may_be_one) hosts_[id.value()].address = told;
}

void JobCore::on(const WorkerJoined& event) {
  HostState& state = host(event.host);
  if (!can_report(state.phase)) return;
  state.incarnation = event.incarnation;
  state.doubted = false;
  if (is_launched(state.phase)) {
    to(state, HostPhase::kJoined);
    state.deadline = Instant::never();
    waits_due_ = true;
    const std::string& name = hosts_[event.host.value()].name;
    JobEvent ready =
        event_of(EventKind::kHostReady, Severity::kInfo,
                 text(name, ": worker is connected", where_time_went(state.times, now_ - state.answered_at)));
    ready.host = name;
    ready.details = launch_details(state.times, now_ - state.answered_at);
    ready.pid = state.keeper_pid;
    emit(std::move(ready));
  }
  state.awaited = false;
  if (state_.phase == JobPhase::kShuttingDown) shut_down_hosts();
  waits_due_ = true;
}

void JobCore::on(const WorkerEnded& event) {
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
      host_failed(event.host, {.kind = LaunchFailureKind::kExec,
                               .phase = is_launched(state.phase) ? "call back" : "start",
                               .elapsed = now_ - state.launched_at,
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
  waits_due_ = true;
  if (std::exchange(state.launch_again, false) && !basis_.starts_nothing()) {
    to(state, HostPhase::kCold);
    return launch(event.host);
  }
  const std::string why = text("its worker ended unexpectedly: ", event.how);
  if (by_itself && !known) lose_host(event.host, why);
  if (by_itself && known) {
    state.lost_because = why;  // more than its daemon could know
    decide_causes_within(event.host, cause_window());
  }
  let_return(event.host, by_itself);
  mark_ranks_lost(event.host);
  if (std::exchange(state.wanted, false)) become_cold(event.host);  // whatever the budgets say
}

// Before its ranks' peers miss them: they are not the cause. What is done about it is decided with the worker's end, at
// once or soon.
void JobCore::on(const WorkerFailing& event) {
  HostState& state = host(event.host);
  if (!is_joined(state.phase) || state.shutdown_told || state.failing) return;
  lose_host(event.host, "its keeper ended unexpectedly, and what runs there is being killed");
  state.failing = true;
  decide_causes_within(event.host, kDestroyDeadline);
}

// Once for each start, whichever supervisor hears of it.
void JobCore::on(const DaemonStarted& event) {
  HostState& state = host(event.host);
  if (!can_report(state.phase) || event.start <= state.daemon_starts) return;
  state.daemon_starts = event.start;
  const std::string& name = hosts_[event.host.value()].name;
  JobEvent started = event_of(EventKind::kHostDaemon, Severity::kWarning,
                              text(name, ": its daemon had ended, and its keeper has started it again (start ",
                                   event.start, "); its ranks go on"));
  started.host = name;
  started.details = {{"start", text(event.start)}};
  emit(std::move(started));
}

// Of gangs that fail because of this host.
void JobCore::decide_causes_within(HostId id, Duration patience) {
  each_gang([&](MeshId m, GangId g) {
    GangState& state = gang(m, g);
    const bool open = is_failing(state.phase) && !state.cause_decided;
    if (open && state.host_lost && state.lost_host == id) state.cause_deadline = now_ + patience;
  });
}

void JobCore::on(const HostSilent& event) {
  // Before it has joined nothing is expected of it but its hello, which has a deadline of its own.
  if (!is_joined(host(event.host).phase)) return;
  host(event.host).fence = std::max(host(event.host).fence, event.grants_until);
  lose_host(event.host, text("silent for ", to_text(event.silence)), event.silence);
  destroy(event.host);
  mark_ranks_lost(event.host);
}

void JobCore::on(const HostDoubted& event) {
  if (!is_joined(host(event.host).phase)) return;
  host(event.host).doubted = !event.heard_again;
  if (event.heard_again) waits_due_ = true;  // somebody may have waited for it
  const std::string& name = hosts_[event.host.value()].name;
  JobEvent doubt =
      event.heard_again
          ? event_of(EventKind::kHostHeard, Severity::kInfo, text(name, ": heard again"))
          : event_of(EventKind::kHostSuspect, Severity::kWarning,
                     text(name, ": silent for ", to_text(event.silence), "; nothing is stopped, it is lost after ",
                          to_text(spec_.supervision.lost_after)));
  doubt.host = name;
  if (!event.heard_again) {
    doubt.details = {{"silent_ms", text(event.silence.count_milliseconds())}};
    drills_.add_loss(doubt, event.host);
  }
  emit(std::move(doubt));
}

void JobCore::lose_host(HostId id, const std::string& why, std::optional<Duration> silence) {
  const std::string& name = hosts_[id.value()].name;
  if (!host(id).failing) {
    host(id).lost_because = why;
    JobEvent lost = event_of(EventKind::kHostLost, Severity::kError, text(name, ": ", why));
    lost.host = name;
    lost.details = {{"why", why}};
    if (silence) lost.details.emplace_back("silent_ms", text(silence->count_milliseconds()));
    drills_.add_loss(lost, id);
    emit(std::move(lost));
    const bool counts = host(id).standing == HostStanding::kGood && !drills_.is_own_blow(id);
    drills_.lost(id);
    if (counts) {
      forget_older(host(id).lost_at, spec_.supervision.reallocate.window, now_);
      host(id).lost_at.push_back(now_);
    }
  }
  recall_lemons(id);
  const std::optional<std::uint32_t> slot = placement_.slot_on(id);
  if (state_.phase == JobPhase::kStarting && !(slot && has_started(basis_, *slot))) {
    host(id).failure = LaunchFailure{.kind = LaunchFailureKind::kOther,
                                     .phase = "connected",
                                     .elapsed = now_ - host(id).launched_at,
                                     .message = why,
                                     .words = {},
                                     .again = {}};
  }
  waits_due_ = true;
  if (!slot) return;
  give_up_reservations(*slot);
  each_gang([&](MeshId m, GangId g) {
    GangState& state = gang(m, g);
    const bool alive = runs(state.phase) || (is_failing(state.phase) && !state.cause_decided);
    const std::vector<RankId> here = placement_.ranks_of(m, g, id);
    const bool held_ranks =
        std::any_of(here.begin(), here.end(), [this](const RankId& r) { return lives(basis_.member(r).stage); });
    if (!alive || !held_ranks) return;
    state.host_lost = true;
    state.lost_host = id;
    gang_failed(m, g, silence ? now_ - *silence : Instant::never());
  });
}

// The host has ended, or is given up: nothing more will be heard of its ranks.
void JobCore::mark_ranks_lost(HostId id) {
  lose_crews(id);
  each_gang([&](MeshId m, GangId g) {
    const bool changed = crews_.lose({m, g}, id);
    if (changed && host(id).fence > now_) fence_by(gang(m, g), id);
    if (changed) check_gang(m, g);
  });
}

// It beats, and does not end what it was told to end. What else lives there ends with it: those gangs lose their host.
void JobCore::give_up_host(HostId id) {
  if (state_.phase <= JobPhase::kRunning && is_joined(host(id).phase)) {
    const Supervision& supervision = spec_.supervision;
    const Duration longest = std::max(supervision.lease, supervision.orphan_ttl);
    host(id).fence = std::max(host(id).fence, fence_of(now_, longest));
    lose_host(id, "it does not end ranks that it was told to end");
  }
  destroy(id);
}

void JobCore::destroy(HostId id) {
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
  state.deadline = now_ + kDestroyDeadline;
  actions_.emplace_back(DestroyWorker{id});
}

void JobCore::shut_down_hosts() {
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    HostState& state = state_.hosts[i];
    const HostId id(i);
    switch (state.phase) {
      case HostPhase::kCold:
      case HostPhase::kDestroying:
      case HostPhase::kEnded:
      case HostPhase::kLost: break;
      case HostPhase::kLaunching:
      case HostPhase::kLaunched: destroy(id); break;  // there is no link to say it over
      case HostPhase::kJoined:
        if (state_.kill_ordered && state.wedged) {
          destroy(id);
        } else if (!state.shutdown_told) {
          state.shutdown_told = true;
          state.deadline = now_ + kShutdownDeadline + vault_memory_patience(spec_.checkpoints.memory);
          actions_.emplace_back(SendShutdown{id, Shutdown{.reason = state_.verdict->reason}});
        }
        break;
    }
  }
}

void JobCore::host_deadlines() {
  look_at_crews();
  last_words_.look_at_times();
  std::vector<HostId> late;
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    HostState& state = state_.hosts[i];
    const bool out = is_out(state.phase);
    if (out && state.cold_at <= now_) become_cold(HostId(i));
    if (state.deadline > now_) continue;
    if (is_destroying(state.phase)) {
      to(state, HostPhase::kLost);
      state.deadline = Instant::never();
      state.unproven = true;
      waits_due_ = true;
      not_launched_again(HostId(i));
      let_return(HostId(i), false);
      mark_ranks_lost(HostId(i));
    } else if (is_launched(state.phase)) {
      not_called_back(HostId(i));
    } else if (is_launching(state.phase)) {
      late.push_back(HostId(i));
    } else {
      destroy(HostId(i));
    }
  }
  if (!late.empty()) not_launched(std::move(late));
}

std::vector<Action> JobCore::outstanding(HostId id, const std::vector<RankReport>& reported) const {
  std::vector<Action> missing;
  const HostState& state = state_.hosts[id.value()];
  const bool given_up = is_cold(state.phase) && state.unproven;
  if (is_destroying(state.phase) || state.phase == HostPhase::kLost || given_up) {
    // The launcher's order has not reached it, and it is heard again: it is told itself, or our answers would keep it
    // for ever.
    missing.emplace_back(SendShutdown{id, Shutdown{.reason = "this host was given up"}});
    return missing;
  }
  if (!is_joined(state.phase) || state.failing) return missing;
  if (state.shutdown_told) {
    missing.emplace_back(SendShutdown{id, Shutdown{.reason = state_.verdict->reason}});
    return missing;
  }
  crews_.add_outstanding(id, reported, missing);
  // What runs there at a generation that nobody wants: it is killed, whatever it is.
  for (const RankReport& report : reported) {
    if (report.phase >= RankPhase::kStopping || judge(basis_, id, report).granted) continue;
    missing.emplace_back(SendStop{id, Stop{.ranks = {report.process.rank},
                                           .generation = report.process.generation,
                                           .signal = 9,
                                           .grace = Duration::zero()}});
  }
  return missing;
}

}  // namespace monarch
