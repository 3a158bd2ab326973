#include "supervisor/core/accounts/ending.h"

#include <algorithm>
#include <utility>

#include "supervisor/core/crew/words.h"
#include "supervisor/core/facts/blame.h"
#include "supervisor/core/facts/gangs.h"
#include "supervisor/core/facts/hosts.h"
#include "supervisor/core/recovery/lifetime.h"
#include "supervisor/core/state/job_life.h"
#include "transport/base/assert.h"
#include "transport/base/exit_code.h"
#include "transport/base/json.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

bool is_parked_whole(const MeshState& mesh) {
  return std::all_of(mesh.gangs.begin(), mesh.gangs.end(), [](const GangState& gang) { return is_parked(gang.phase); });
}

// Nothing of its work is done.
Verdict blame_parked(const std::string& mesh) {
  Verdict verdict;
  verdict.exit_code = kExitLost;
  verdict.cause.kind = CauseKind::kHost;
  verdict.cause.mesh = mesh;
  verdict.cause.summary = text("no gang of ", mesh, " is left: all of them are parked");
  verdict.cause.rule = "shrink.min: fail";
  verdict.reason = verdict.cause.summary;
  return verdict;
}

// From the last KILL to the job's end: for output, goodbyes and the verdict. Of little time, a quarter.
constexpr Duration kLastWords = Duration::seconds(5);

// Who was asked when the end comes never answered: Slurm's own default of KillWait (slurm.conf(5)).
constexpr Duration kUnknownLeft = Duration::seconds(30);

// MONARCH_EVENTS takes messages of 2,048 bytes.
constexpr std::size_t kReasonBytes = 512;

}  // namespace

std::string rule_of(const LaunchFacts& launch) {
  return text("launch.", launch.name, ".on_preempt: ", to_text(launch.on_preempt));
}

void Ending::begin() {
  MONARCH_ASSERT(mine_.phase == JobPhase::kNew);
  to(mine_, JobPhase::kStarting);
  give_time_to_start();
  mine_.time_deadline = basis_.now + basis_.spec.time_limit;
}

void Ending::returned() {
  not_before(mine_.start_deadline, basis_.now + std::min(basis_.spec.start_timeout, kAnswersWithin));
  not_before(mine_.drain_deadline, basis_.now + drain_patience(basis_));
}

void Ending::fail(Verdict verdict) {
  if (!mine_.verdict) mine_.verdict = std::move(verdict);
  forget_deadlines();
  if (mine_.phase >= JobPhase::kStopping) return;
  to(mine_, JobPhase::kStopping);
  if (mine_.verdict->outcome != Outcome::kSucceeded) {
    const bool asked = mine_.verdict->cause.kind == CauseKind::kRequest;
    basis_.emit(basis_.event(EventKind::kJobStopping, asked ? Severity::kInfo : Severity::kWarning,
                             text("stopping: ", mine_.verdict->reason)));
  }
  stop_due_ = true;
}

void Ending::forget_deadlines() {
  mine_.start_deadline = Instant::never();
  mine_.time_deadline = Instant::never();
  mine_.lifetime_deadline = Instant::never();
  mine_.lifetime_warning = Instant::never();
  mine_.foreseen_deadline = Instant::never();
}

void Ending::on(const StopOrdered& event) {
  const StopRequest& request = event.request;
  if (request.how == StopHow::kKill) mine_.kill_ordered = true;
  if (!mine_.verdict) {
    Verdict verdict;
    verdict.outcome = request.interrupted ? Outcome::kInterrupted : Outcome::kStopped;
    verdict.exit_code = request.interrupted ? kExitInterrupted : kExitStopped;
    if (request.exit_code != 0) verdict.exit_code = request.exit_code;
    if (request.how == StopHow::kOver) verdict.exit_code = kExitOk;
    verdict.cause.kind = request.exit_code == kExitLost ? CauseKind::kTimeLimit : CauseKind::kRequest;
    verdict.cause.summary =
        request.how == StopHow::kOver ? printable(request.who) : text("stopped by ", printable(request.who));
    verdict.reason = verdict.cause.summary;
    fail(std::move(verdict));
  } else if (mine_.kill_ordered) {
    stop_due_ = true;
  }
  if (mine_.kill_ordered && mine_.phase == JobPhase::kShuttingDown) kill_due_ = true;
}

void Ending::on(const IdleNoted& event) {
  if (mine_.phase != JobPhase::kRunning) return;
  basis_.emit(basis_.event(EventKind::kJobExpiring, Severity::kWarning,
                           text("lifetime.idle (", to_text(basis_.spec.lifetime.idle),
                                "): nobody has used the job, it is stopped in ", to_text(event.left))));
}

void Ending::give_time_to_start() {
  mine_.start_deadline = basis_.now + basis_.spec.start_timeout;
  mine_.late_before = basis_.state.late;
}

// Time in somebody's queue does not count; whoever asked has a limit for it.
bool Ending::start_is_overdue() {
  for (std::uint32_t i = 0; i < basis_.state.hosts.size(); ++i) {
    if (!is_in_queue(basis_, HostId(i))) continue;
    give_time_to_start();
    return false;
  }
  return true;
}

void Ending::time_is_up(const std::string& key, Duration limit) {
  Verdict verdict;
  verdict.exit_code = kExitLost;
  // A job that was left up as long as it may has not failed.
  if (key == "lifetime.max") verdict.outcome = Outcome::kStopped;
  verdict.cause.kind = CauseKind::kTimeLimit;
  verdict.cause.summary = text(key, " (", to_text(limit), ") reached");
  verdict.cause.rule = text(key, ": stop");
  verdict.reason = verdict.cause.summary;
  fail(std::move(verdict));
}

void Ending::look_at_times() {
  if (mine_.start_deadline <= basis_.now && start_is_overdue()) {
    mine_.start_deadline = Instant::never();
    Verdict verdict;
    verdict.exit_code = kExitUnreachable;
    verdict.cause.kind = CauseKind::kStart;
    verdict.cause.summary = text("not started within start_timeout (", to_text(basis_.spec.start_timeout), ")",
                                 basis_.late_since(mine_.late_before), ": ", missing_at_start(basis_));
    verdict.cause.rule = "start_timeout: fail";
    verdict.reason = verdict.cause.summary;
    fail(std::move(verdict));
  }
  if (mine_.time_deadline <= basis_.now) time_is_up("time_limit", basis_.spec.time_limit);
  if (mine_.foreseen_deadline <= basis_.now) stop_as_foreseen();
  if (mine_.lifetime_deadline <= basis_.now) time_is_up("lifetime.max", basis_.spec.lifetime.max);
  if (mine_.lifetime_warning <= basis_.now) {
    mine_.lifetime_warning = Instant::never();
    basis_.emit(basis_.event(EventKind::kJobExpiring, Severity::kWarning,
                             text("lifetime.max (", to_text(basis_.spec.lifetime.max), ") is reached in ",
                                  to_text(warning_before(basis_.spec.lifetime.max)), ": the job is stopped then")));
  }
}

void Ending::look_running() {
  if (mine_.phase != JobPhase::kStarting) return;
  for (std::uint32_t m = 0; m < basis_.state.meshes.size(); ++m) {
    if (!is_ready(basis_, MeshId(m))) return;
  }
  to(mine_, JobPhase::kRunning);
  mine_.start_deadline = Instant::never();
  if (basis_.spec.lifetime.max < Duration::forever()) {
    mine_.lifetime_deadline = basis_.now + basis_.spec.lifetime.max;
    mine_.lifetime_warning = mine_.lifetime_deadline - warning_before(basis_.spec.lifetime.max);
  }
  basis_.emit(
      basis_.event(EventKind::kJobRunning, Severity::kInfo, text(basis_.options.job_id, ": every mesh is ready")));
}

void Ending::look_done() {
  check_foreseen();
  if (mine_.phase != JobPhase::kRunning) return;
  bool any_decides = false;
  bool all_done = true;
  basis_.each_gang([&](MeshId m, GangId g) {
    any_decides = any_decides || !basis_.mesh(m).sidecar;
    all_done = all_done && (basis_.mesh(m).sidecar || is_through(basis_.gang(m, g).phase));
  });
  if (!all_done || !any_decides) return;  // of idle slots alone: until it is stopped
  Verdict verdict;
  verdict.outcome = Outcome::kSucceeded;
  verdict.exit_code = 0;
  verdict.reason = "every rank ended with exit code 0" + parked_text(basis_);
  for (std::size_t m = 0; m < basis_.state.meshes.size(); ++m) {
    const MeshSpec& mesh = basis_.spec.meshes[m];
    if (!mesh.sidecar && is_parked_whole(basis_.state.meshes[m])) verdict = blame_parked(mesh.name);
  }
  fail(std::move(verdict));
}

void Ending::look_drained() {
  if (mine_.phase == JobPhase::kStopping) {
    if (highest_stage(basis_) || any_lives_beside(basis_)) return;
    to(mine_, JobPhase::kDraining);
    mine_.drain_deadline = basis_.now + drain_patience(basis_);
  }
  if (mine_.phase != JobPhase::kDraining) return;
  if (mine_.kill_ordered) mine_.drain_deadline = std::min(mine_.drain_deadline, basis_.now + limits::kKillDeadline);
  if (basis_.now < mine_.drain_deadline && last_words_.any_comes()) return;
  last_words_.give_up_all();
  mine_.drain_deadline = Instant::never();
  to(mine_, JobPhase::kShuttingDown);
  shut_down_due_ = true;
}

void Ending::finish() {
  if (mine_.phase != JobPhase::kShuttingDown) return;
  for (const HostState& host : basis_.state.hosts) {
    if (!is_cold(host.phase) && !is_out(host.phase)) return;
  }
  MONARCH_ASSERT(mine_.verdict.has_value());
  for (std::uint32_t i = 0; i < basis_.hosts.size(); ++i) {
    const HostState& host = basis_.host(HostId(i));
    if (host.phase == HostPhase::kLost || host.wedged || host.unproven) {
      mine_.verdict->left_behind.push_back(basis_.hosts[i].name);
    }
  }
  tell_failed_hosts(basis_, *mine_.verdict);
  to(mine_, JobPhase::kEnded);
  const bool failed = mine_.verdict->outcome == Outcome::kFailed;
  basis_.emit(basis_.event(EventKind::kJobEnded, failed ? Severity::kError : Severity::kInfo,
                           text("ended with exit code ", mine_.verdict->exit_code, ": ", mine_.verdict->reason)));
  basis_.actions.emplace_back(FinishJob{*mine_.verdict});
}

void Ending::on(const EndForeseen& event) {
  if (mine_.phase != JobPhase::kStarting && mine_.phase != JobPhase::kRunning) return;  // it ends already
  // Who was told goes by that: later counts for nothing, sooner does.
  if (mine_.foreseen && event.by >= mine_.foreseen->by) return;
  const bool first = !mine_.foreseen;
  foresee(event);
  if (!first || mine_.phase >= JobPhase::kStopping) return;
  nothing_starts_ = true;
}

void Ending::foresee(const EndForeseen& event) {
  mine_.foreseen = ForeseenEnd{.kind = event.kind, .why = printable(event.why), .by = event.by};
  mine_.start_deadline = Instant::never();
  if (event.by == Instant::never()) return;  // what is to be told follows
  const Duration left = std::max(event.by - basis_.now, Duration::zero());
  mine_.foreseen->kill = event.by - std::min(kLastWords, left / 4);
  mine_.foreseen_deadline = std::max(basis_.now, mine_.foreseen->kill - longest_stop(basis_));
  const Duration until_stop = mine_.foreseen_deadline - basis_.now;
  basis_.emit(basis_.event(
      event.kind == ForeseenKind::kTimeLimit ? EventKind::kJobExpiring : EventKind::kJobPreempted, Severity::kWarning,
      text(mine_.foreseen->why, ", and ends what runs there in ",
           to_text(Duration::milliseconds(left.count_milliseconds())),
           until_stop == Duration::zero() ? ": the job is stopped now"
                                          : text(": ranks are told to save, and are stopped in ",
                                                 to_text(Duration::milliseconds(until_stop.count_milliseconds()))))));
  const Json preempted = Json::object({{"v", 1},
                                       {"event", "preempted"},
                                       {"left_milliseconds", left.count_milliseconds()},
                                       {"stop_milliseconds", until_stop.count_milliseconds()},
                                       {"why", mine_.foreseen->why.substr(0, kReasonBytes)}});
  const Json checkpoint_now = Json::object({{"v", 1}, {"event", "checkpoint_now"}});
  basis_.each_gang([&](MeshId m, GangId g) {
    if (!has_ranks(basis_.gang(m, g).phase)) return;
    tell(basis_, m, g, preempted);
    tell(basis_, m, g, checkpoint_now);
  });
  if (until_stop == Duration::zero()) stop_as_foreseen();
}

void Ending::foresee_without_answer() {
  if (!mine_.foreseen || mine_.foreseen->by != Instant::never() || mine_.phase >= JobPhase::kStopping) return;
  foresee({.kind = mine_.foreseen->kind, .why = mine_.foreseen->why, .by = basis_.now + kUnknownLeft});
}

void Ending::stop_as_foreseen() {
  Verdict verdict;
  verdict.outcome = Outcome::kStopped;
  verdict.exit_code = kExitLost;
  verdict.cause.kind = CauseKind::kTimeLimit;
  verdict.cause.summary = mine_.foreseen->why;
  verdict.cause.rule = rule_of(basis_.spec.launch.facts());
  verdict.reason = verdict.cause.summary;
  fail(std::move(verdict));
}

// Where nothing runs any more nothing is waited for, once it is known how it ends: a job of which all is done has ended
// well.
void Ending::check_foreseen() {
  if (mine_.phase != JobPhase::kStarting && mine_.phase != JobPhase::kRunning) return;
  if (!mine_.foreseen || mine_.foreseen->by == Instant::never()) return;
  bool done = true;
  bool any_runs = false;
  basis_.each_gang([&](MeshId m, GangId g) {
    const auto phase = basis_.gang(m, g).phase;
    if (basis_.mesh(m).sidecar) return;
    done = done && is_through(phase);
    any_runs = any_runs || has_ranks(phase);
  });
  if (!any_runs && !done) stop_as_foreseen();
}

}  // namespace monarch
