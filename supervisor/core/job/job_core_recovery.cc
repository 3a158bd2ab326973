// Recovery: what becomes of a gang that has failed, from the decision to its next generation.

#include <algorithm>
#include <utility>

#include "supervisor/core/facts/occupants.h"
#include "supervisor/core/facts/some_of.h"
#include "supervisor/core/job/job_core.h"
#include "supervisor/core/recovery/restart_budget.h"
#include "supervisor/core/state/gang_life.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Of a program that names no steps, being ready for so long is progress.
constexpr Duration kReadyIsProgress = Duration::seconds(60);

}  // namespace

Recovery JobCore::recovery_of(MeshId mesh, GangId g, const Verdict& verdict, std::optional<std::size_t> first) {
  GangState& state = gang(mesh, g);
  const Supervision& policy = mesh_spec(mesh).supervision;
  FailureFacts facts;
  facts.failures = still_count(state.failures, policy.restart.window, now_);
  facts.seed = jitter_seed(state_.job, mesh, g, state.restarts);
  facts.out_of_memory_before = state.out_of_memory;
  if (verdict.cause.kind == CauseKind::kRank && state.hung) {
    facts.kind = FailureKind::kHung;
  } else if (verdict.cause.kind == CauseKind::kRank && first) {
    facts.end = state.ends[*first].end;
    facts.unmade = mesh_spec(mesh).serves && !state.ever_ready && facts.end.kind == EndKind::kExited;
    note_crash(state, state.ends[*first].process.rank);
    if (state.crash) {
      facts.crashes_at_step = state.crash->count;
      facts.step = state.crash->step;
    }
  } else if (state.host_lost) {
    facts = facts_of_lost_host(basis_, mesh, placement_.hosts_of(mesh, g));
    // Whether a host that fell silent comes back is not known, even if its worker is proven to have ended before this
    // is decided.
    const bool silent =
        std::find(state.fenced_by.begin(), state.fenced_by.end(), state.lost_host) != state.fenced_by.end();
    const bool is_due = host(state.lost_host).cold_at != Instant::never();
    if (silent && is_due && facts.hosts_due > 0) --facts.hosts_due;
  } else {
    facts.kind = verdict.cause.kind == CauseKind::kRank ? FailureKind::kHung : FailureKind::kRanksEnded;
  }
  Recovery next = recover(policy, facts);
  // Its failure is told as it is; the job is ending anyway.
  if (next.remedy != Remedy::kFail && basis_.starts_nothing()) {
    next = {.remedy = Remedy::kFail, .wait = {}, .rule = "the job is ending: no restart"};
  }
  return next;
}

// The same step again, or another story.
void JobCore::note_crash(GangState& state, RankId who) {
  const std::optional<std::uint64_t> step = rank(who).step;
  if (!step) {
    state.crash.reset();
  } else if (state.crash && state.crash->step == *step) {
    ++state.crash->count;
    state.crash->rank = who;
  } else {
    state.crash = Crash{.rank = who, .step = *step, .count = 1};
  }
}

void JobCore::note_failure(MeshId mesh, GangId g, Verdict verdict, const Recovery& next) {
  GangState& state = gang(mesh, g);
  state.out_of_memory = state.out_of_memory || verdict.cause.end.out_of_memory;
  state.failure = std::move(verdict);
  state.failed_at = now_;
  state.not_before = now_ + next.wait;
  ++state.restarts;
  if (next.remedy != Remedy::kRestart) return;
  forget_older(state.failures, mesh_spec(mesh).supervision.restart.window, now_);
  state.failures.push_back(now_);
  hosts_.suspect(mesh, g);
}

// Nothing of it runs: it waits for its time, and for its hosts.
void JobCore::await_next(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  MONARCH_ASSERT_BECAUSE(!basis_.starts_nothing(), "what ends the job starts nothing");
  to(state, GangPhase::kWaiting);
  state.was_ready = false;
  for (const RankId& id : placement_.ranks_of(mesh, g)) {
    MONARCH_ASSERT_BECAUSE(!lives(basis_.member(id).stage),
                           "I3: a successor starts when nothing of the one before it may act");
    last_words_.note(id);
    rank(id) = RankState{};
  }
  crews_.forget({mesh, g});
  standby_takes(mesh, g);
  waits_to_tell_.emplace_back(mesh, g);
  waits_due_ = true;
}

// Of gangs that came to wait within this step, once it is known what becomes of their slots.
void JobCore::tell_waits() {
  for (const auto& [mesh, g] : std::exchange(waits_to_tell_, {})) {
    if (!is_waiting(gang(mesh, g).phase)) continue;
    tell_fence(mesh, g);
    tell_return(mesh, g);
  }
}

void JobCore::tell_fence(MeshId mesh, GangId g) {
  Instant until;
  std::vector<std::string> names;
  for (const HostId id : gang(mesh, g).fenced_by) {
    if (state_.hosts[id.value()].fence <= now_) continue;
    until = std::max(until, state_.hosts[id.value()].fence);
    names.push_back(pool_[id.value()].name);
  }
  if (names.empty()) return;
  const Duration wait = Duration::milliseconds((until - now_).count_milliseconds());
  basis_.say_of_gang(mesh, g, EventKind::kGangWaiting, Severity::kInfo,
                     text("waits ", to_text(wait), " at most: until then what ran on ", some_of(std::move(names)),
                          " may hold a lease, unless it is proven to have ended"));
}

// Where one of its slots has no host now, and somebody will come back.
void JobCore::tell_return(MeshId mesh, GangId g) {
  const Recovery next =
      recover(mesh_spec(mesh).supervision, facts_of_lost_host(basis_, mesh, placement_.hosts_of(mesh, g)));
  for (const HostId id : placement_.hosts_of(mesh, g)) {
    // See refill_slot(): it moves once nothing lives there.
    const bool waits = next.remedy == Remedy::kReplace && host(id).standing != HostStanding::kGood;
    if (!waits || !somebody_lives_on(state_, placement_, id)) continue;
    const std::string& name = pool_[id.value()].name;
    basis_.say_of_gang(
        mesh, g, EventKind::kGangWaiting, Severity::kWarning,
        text("waits until what else runs on ", name, " has ended, where nothing new starts; `monarch drain --now ",
             name, "` stops it [", next.rule, "]"));
  }
  if (next.remedy != Remedy::kAwait) return;
  basis_.say_of_gang(mesh, g, EventKind::kGangWaiting, Severity::kWarning, text("waits for a host [", next.rule, "]"));
}

void JobCore::begin_generation(GangState& state) {
  state.was_ready = false;
  state.furthest = std::max(state.furthest, state.reached);
  state.reached.reset();
  state.first_step.reset();
  state.caught_up = false;
  state.ends.clear();
  state.cause_decided = false;
  state.host_lost = false;
  state.hung.reset();
  state.fenced_by.clear();
  state.hung_because.clear();
  state.progress_deadline = recovers(state) ? now_ + spec_.start_timeout : Instant::never();
  state.late_before = state_.late;
}

// Of a gang that was ready for long enough, where its program names no steps; or of one that was started again and has
// to be ready by now, as the job had to be at its start.
void JobCore::progress_is_due(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  state.progress_deadline = Instant::never();
  if (state.was_ready) return forget_failures(state);
  if (basis_.starts_nothing()) return;
  const std::vector<std::string> missing = not_ready(mesh, g);
  if (missing.empty()) return;
  state.hung_because = text("not ready within start_timeout (", to_text(spec_.start_timeout), ")",
                            basis_.late_since(state.late_before), ": waiting for ", some_of(missing));
  if (!is_reserving(state.phase)) return gang_failed(mesh, g);
  to(state, GangPhase::kFailing);  // nothing of it runs
  crews_.forget({mesh, g});
  check_gang(mesh, g);
}

// Who is missing; the first of them counts as the rank that makes no progress.
std::vector<std::string> JobCore::not_ready(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  const bool reserving = is_reserving(state.phase);
  std::vector<std::string> missing;
  if (!reserving && !runs(state.phase)) return missing;
  for (const HostId where : placement_.hosts_of(mesh, g)) {
    if (reserving && basis_.crew(mesh, g).ports[*placement_.index_in_gang(mesh, g, where)].held) continue;
    for (const RankId& id : placement_.ranks_of(mesh, g, where)) {
      const RankState& slot = rank(id);
      if (!reserving && (slot.ready || (slot.reaped && !mesh_spec(mesh).sidecar))) continue;
      if (!state.hung) state.hung = id;
      if (!reserving) missing.push_back(unready_text(basis_, id));
    }
    if (reserving) missing.push_back(text(pool_[where.value()].name, " (has not said which ports it holds)"));
  }
  return missing;
}

void JobCore::note_ready(GangState& state) {
  state.was_ready = true;
  state.ever_ready = true;
  state.progress_deadline = Instant::never();
  const bool counts = !state.failures.empty() || state.out_of_memory;
  if (counts && !state.furthest) state.progress_deadline = now_ + kReadyIsProgress;
}

// One that is still to be ready has its time for that as before.
void JobCore::forget_failures(GangState& state) {
  state.failures.clear();
  state.crash.reset();
  state.out_of_memory = false;
  if (state.was_ready) state.progress_deadline = Instant::never();
}

// What failed before a step that none of its generations had reached does not count any longer.
void JobCore::on(const GangProgressed& event) {
  GangState& state = gang(event.mesh, event.gang);
  if (basis_.crew(event.mesh, event.gang).generation != event.generation || !is_running(state.phase)) return;
  // A host may say what it likes.
  const Instant at = std::clamp(event.at, std::min(state.started_at, now_), now_);
  if (!state.first_step) {
    state.first_step = event.step;
    named_step(state.time, *bin_of(state), at);
  }
  if (state.caught_up || !state.furthest || event.step <= *state.furthest) return;
  state.caught_up = true;
  drills_.recovered(event.mesh, event.gang);
  enter(state.time, bin_of(state), at);
  forget_failures(state);
  tell_caught_up(event, at);
}

void JobCore::on(const GangPaused& event) {
  GangState& state = gang(event.mesh, event.gang);
  if (basis_.crew(event.mesh, event.gang).generation != event.generation || !is_running(state.phase)) return;
  stood_still(state.time, event.from, std::min(event.to, now_));
}

void JobCore::on(const StepsHeard& event) {
  for (const GangStep& heard : event.gangs) {
    GangState& state = gang(heard.mesh, heard.gang);
    if (basis_.crew(heard.mesh, heard.gang).generation == heard.generation)
      state.reached = std::max(state.reached, std::optional(heard.step));
  }
}

void JobCore::account() {
  each_gang([this](MeshId m, GangId g) {
    GangState& state = gang(m, g);
    const bool lacks = is_waiting(state.phase) && lacks_host(basis_, m, g);
    enter(state.time, lacks ? TimeBin::kWaiting : bin_of(state), now_);
  });
}

// One that goes on from an earlier job has not ended in this one.
void JobCore::tell_caught_up(const GangProgressed& event, Instant at) {
  const GangState& state = gang(event.mesh, event.gang);
  const std::uint64_t first = *state.first_step;
  const std::uint64_t again = first > *state.furthest ? 0 : *state.furthest - first + 1;
  EventDetails details = {{"step", text(event.step)}, {"again", text(again)}};
  std::string when;
  if (state.failed_at != Instant()) {
    const Duration after = Duration::milliseconds((at - state.failed_at).count_milliseconds());
    when = text(", ", to_text(after), " after it had ended");
    details.emplace_back("after_ms", text(after.count_milliseconds()));
  }
  basis_.say_of_gang(event.mesh, event.gang, EventKind::kGangCaughtUp, Severity::kInfo,
                     text("is past step ", *state.furthest, ", where it was", when,
                          again == 0 ? "" : text("; ", again, again == 1 ? " step was" : " steps were", " done again")),
                     details);
}

}  // namespace monarch
