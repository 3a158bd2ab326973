// An end that is foreseen: who gave the hosts takes them back at a time. Ranks are told at once, and may save what they
// have; nothing is started again, no host takes another's place and no budget is spent; the job is stopped early enough
// to have ended by then.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/state/gang_life.h"
#include "transport/base/exit_code.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

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

void JobCore::on(const EndForeseen& event) {
  if (state_.phase != JobPhase::kStarting && state_.phase != JobPhase::kRunning) return;  // it ends already
  // Who was told goes by that: later counts for nothing, sooner does.
  if (state_.foreseen && event.by >= state_.foreseen->by) return;
  const bool first = !state_.foreseen;
  foresee(event);
  if (!first || state_.phase >= JobPhase::kStopping) return;
  // Of what will not be started: a spare's warming, standbys, and what hosts hold for gangs.
  stop_crews();
  each_gang([this](MeshId m, GangId g) { give_up_reservation(m, g); });
}

void JobCore::foresee(const EndForeseen& event) {
  state_.foreseen = ForeseenEnd{.kind = event.kind, .why = printable(event.why), .by = event.by};
  state_.start_deadline = Instant::never();
  if (event.by == Instant::never()) return;  // what is to be told follows
  const Duration left = std::max(event.by - now_, Duration::zero());
  state_.foreseen->kill = event.by - std::min(kLastWords, left / 4);
  state_.foreseen_deadline = std::max(now_, state_.foreseen->kill - longest_stop());
  const Duration until_stop = state_.foreseen_deadline - now_;
  emit(event_of(
      event.kind == ForeseenKind::kTimeLimit ? EventKind::kJobExpiring : EventKind::kJobPreempted, Severity::kWarning,
      text(state_.foreseen->why, ", and ends what runs there in ",
           to_text(Duration::milliseconds(left.count_milliseconds())),
           until_stop == Duration::zero() ? ": the job is stopped now"
                                          : text(": ranks are told to save, and are stopped in ",
                                                 to_text(Duration::milliseconds(until_stop.count_milliseconds()))))));
  const Json preempted = Json::object({{"v", 1},
                                       {"event", "preempted"},
                                       {"left_milliseconds", left.count_milliseconds()},
                                       {"stop_milliseconds", until_stop.count_milliseconds()},
                                       {"why", state_.foreseen->why.substr(0, kReasonBytes)}});
  const Json checkpoint_now = Json::object({{"v", 1}, {"event", "checkpoint_now"}});
  each_gang([&](MeshId m, GangId g) {
    if (!has_ranks(gang(m, g).phase)) return;
    tell(m, g, preempted);
    tell(m, g, checkpoint_now);
  });
  if (until_stop == Duration::zero()) stop_as_foreseen();
}

// By a supervisor that comes back: the one before it may have waited for the answer.
void JobCore::foresee_without_answer() {
  if (!state_.foreseen || state_.foreseen->by != Instant::never() || state_.phase >= JobPhase::kStopping) return;
  foresee({.kind = state_.foreseen->kind, .why = state_.foreseen->why, .by = now_ + kUnknownLeft});
}

void JobCore::stop_as_foreseen() {
  Verdict verdict;
  verdict.outcome = Outcome::kStopped;
  verdict.exit_code = kExitLost;
  verdict.cause.kind = CauseKind::kTimeLimit;
  verdict.cause.summary = state_.foreseen->why;
  verdict.cause.rule = rule_of(spec_.launch.facts());
  verdict.reason = verdict.cause.summary;
  fail_job(std::move(verdict));
}

// Where nothing runs any more nothing is waited for, once it is known how it ends: a job of which all is done has ended
// well.
void JobCore::check_foreseen() {
  if (state_.phase != JobPhase::kStarting && state_.phase != JobPhase::kRunning) return;
  if (!state_.foreseen || state_.foreseen->by == Instant::never()) return;
  bool done = true;
  bool any_runs = false;
  each_gang([&](MeshId m, GangId g) {
    const auto phase = gang(m, g).phase;
    if (mesh_spec(m).sidecar) return;
    done = done && is_through(phase);
    any_runs = any_runs || has_ranks(phase);
  });
  if (!any_runs && !done) stop_as_foreseen();
}

// However its ranks ended: they were told to, or were killed by who takes their hosts.
void JobCore::ended_as_foreseen(MeshId mesh, GangId g) {
  to(gang(mesh, g), GangPhase::kFailed);
  gang(mesh, g).failure.reset();
  basis_.say_of_gang(mesh, g, EventKind::kGangEnded, Severity::kInfo,
                     text("has ended, and is not started again: ", state_.foreseen->why));
}

// Stage after stage.
Duration JobCore::longest_stop() const {
  std::vector<Duration> stages(stages_.count());
  for (std::uint32_t m = 0; m < spec_.meshes.size(); ++m) {
    Duration& longest = stages[stages_.stage_of(MeshId(m))];
    longest = std::max(longest, mesh_spec(MeshId(m)).stop.grace + limits::kKillDeadline);
  }
  Duration all;
  for (const Duration& one : stages) all = all + one;
  return all;
}

Duration JobCore::grace_left(Duration grace) const {
  if (!state_.foreseen || state_.foreseen->kill == Instant::never()) return grace;
  return std::clamp(state_.foreseen->kill - now_, Duration::zero(), grace);
}

}  // namespace monarch
