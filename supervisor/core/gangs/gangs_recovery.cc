#include "supervisor/core/gangs/gangs.h"

#include <algorithm>
#include <utility>

#include "supervisor/core/facts/claims.h"
#include "supervisor/core/facts/gangs.h"
#include "supervisor/core/facts/occupants.h"
#include "supervisor/core/facts/slots.h"
#include "supervisor/core/facts/some_of.h"
#include "supervisor/core/recovery/restart_budget.h"
#include "supervisor/core/state/gang_life.h"
#include "transport/base/assert.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// The same step again, or another story.
void note_crash(GangState& state, RankId who, std::optional<std::uint64_t> step) {
  if (!step) {
    state.crash.reset();
  } else if (state.crash && state.crash->step == *step) {
    ++state.crash->count;
    state.crash->rank = who;
  } else {
    state.crash = Crash{.rank = who, .step = *step, .count = 1};
  }
}

// One that is still to be ready has its time for that as before.
void forget_failures(GangState& state) {
  state.failures.clear();
  state.crash.reset();
  state.out_of_memory = false;
  if (state.was_ready) state.progress_deadline = Instant::never();
}

void tell_fence(const CoreBasis& job, MeshId mesh, GangId g) {
  Instant until;
  std::vector<std::string> names;
  for (const HostId id : job.gang(mesh, g).fenced_by) {
    if (job.host(id).fence <= job.now) continue;
    until = std::max(until, job.host(id).fence);
    names.push_back(job.name_of(id));
  }
  if (names.empty()) return;
  const Duration wait = Duration::milliseconds((until - job.now).count_milliseconds());
  job.say_of_gang(mesh, g, EventKind::kGangWaiting, Severity::kInfo,
                  text("waits ", to_text(wait), " at most: until then what ran on ", some_of(std::move(names)),
                       " may hold a lease, unless it is proven to have ended"));
}

// Where one of its slots has no host now, and somebody will come back.
void tell_return(const CoreBasis& job, MeshId mesh, GangId g) {
  const Recovery next =
      recover(job.mesh(mesh).supervision, facts_of_lost_host(job, mesh, job.placement.hosts_of(mesh, g)));
  for (const HostId id : job.placement.hosts_of(mesh, g)) {
    // See refill_slot(): it moves once nothing lives there.
    const bool waits = next.remedy == Remedy::kReplace && job.host(id).standing != HostStanding::kGood;
    if (!waits || !somebody_lives_on(job.state, job.placement, id)) continue;
    const std::string& name = job.name_of(id);
    job.say_of_gang(
        mesh, g, EventKind::kGangWaiting, Severity::kWarning,
        text("waits until what else runs on ", name, " has ended, where nothing new starts; `monarch drain --now ",
             name, "` stops it [", next.rule, "]"));
  }
  if (next.remedy != Remedy::kAwait) return;
  job.say_of_gang(mesh, g, EventKind::kGangWaiting, Severity::kWarning, text("waits for a host [", next.rule, "]"));
}

// One that goes on from an earlier job has not ended in this one.
void tell_caught_up(const CoreBasis& job, const GangProgressed& event, Instant at) {
  const GangState& state = job.gang(event.mesh, event.gang);
  const std::uint64_t first = *state.first_step;
  const std::uint64_t again = first > *state.furthest ? 0 : *state.furthest - first + 1;
  EventDetails details = {{"step", text(event.step)}, {"again", text(again)}};
  std::string when;
  if (state.failed_at != Instant()) {
    const Duration after = Duration::milliseconds((at - state.failed_at).count_milliseconds());
    when = text(", ", to_text(after), " after it had ended");
    details.emplace_back("after_ms", text(after.count_milliseconds()));
  }
  job.say_of_gang(event.mesh, event.gang, EventKind::kGangCaughtUp, Severity::kInfo,
                  text("is past step ", *state.furthest, ", where it was", when,
                       again == 0 ? "" : text("; ", again, again == 1 ? " step was" : " steps were", " done again")),
                  details);
}

}  // namespace

Recovery Gangs::recovery_of(MeshId mesh, GangId g, const Verdict& verdict, std::optional<std::size_t> first) {
  GangState& state = gang(mesh, g);
  const Supervision& policy = basis_.mesh(mesh).supervision;
  FailureFacts facts;
  facts.failures = still_count(state.failures, policy.restart.window, basis_.now);
  facts.seed = jitter_seed(basis_.state.job, mesh, g, state.restarts);
  facts.out_of_memory_before = state.out_of_memory;
  if (verdict.cause.kind == CauseKind::kRank && state.hung) {
    facts.kind = FailureKind::kHung;
  } else if (verdict.cause.kind == CauseKind::kRank && first) {
    facts.end = state.ends[*first].end;
    facts.unmade = basis_.mesh(mesh).serves && !state.ever_ready && facts.end.kind == EndKind::kExited;
    const RankId who = state.ends[*first].process.rank;
    note_crash(state, who, rank(who).step);
    if (state.crash) {
      facts.crashes_at_step = state.crash->count;
      facts.step = state.crash->step;
    }
  } else if (state.host_lost) {
    facts = facts_of_lost_host(basis_, mesh, basis_.placement.hosts_of(mesh, g));
    // Whether a host that fell silent comes back is not known, even if its worker is proven to have ended before this
    // is decided.
    const bool silent =
        std::find(state.fenced_by.begin(), state.fenced_by.end(), state.lost_host) != state.fenced_by.end();
    const bool is_due = basis_.host(state.lost_host).cold_at != Instant::never();
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

void Gangs::note_failure(MeshId mesh, GangId g, Verdict verdict, const Recovery& next) {
  GangState& state = gang(mesh, g);
  state.out_of_memory = state.out_of_memory || verdict.cause.end.out_of_memory;
  state.failure = std::move(verdict);
  state.failed_at = basis_.now;
  state.not_before = basis_.now + next.wait;
  ++state.restarts;
  if (next.remedy != Remedy::kRestart) return;
  forget_older(state.failures, basis_.mesh(mesh).supervision.restart.window, basis_.now);
  state.failures.push_back(basis_.now);
  hosts_.suspect(mesh, g);
}

// Nothing of it runs: it waits for its time, and for its hosts, or rests where nobody wants it any more.
void Gangs::leave_generation(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  MONARCH_ASSERT_BECAUSE(!basis_.starts_nothing(), "what ends the job starts nothing");
  for (const RankId& id : basis_.placement.ranks_of(mesh, g)) {
    MONARCH_ASSERT_BECAUSE(!lives(basis_.member(id).stage),
                           "I3: a successor starts when nothing of the one before it may act");
    last_words_.note(id);
    rank(id) = RankState{};  // what it wrote last may still come; all else of the generation is over
  }
  crews_.forget({mesh, g});
  basis_.waits_due = true;
  if (rests(basis_, mesh, g)) return to_rest(state);
  to(state, GangPhase::kWaiting);
  state.was_ready = false;
  waiting_.emplace_back(mesh, g);
  to_tell_.emplace_back(mesh, g);
}

void Gangs::end_step() {
  for (const auto& [mesh, g] : std::exchange(to_tell_, {})) {
    if (!is_waiting(gang(mesh, g).phase)) continue;
    tell_fence(basis_, mesh, g);
    tell_return(basis_, mesh, g);
  }
  basis_.each_gang([this](MeshId m, GangId g) {
    GangState& state = gang(m, g);
    const bool lacks = is_waiting(state.phase) && lacks_host(basis_, m, g);
    enter(state.time, lacks ? TimeBin::kWaiting : bin_of(state), basis_.now);
  });
}

// Of a gang that was ready for long enough, where its program names no steps; or of one that was started again and has
// to be ready by now, as the job had to be at its start.
void Gangs::progress_is_due(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  state.progress_deadline = Instant::never();
  if (state.was_ready) return forget_failures(state);
  if (basis_.starts_nothing()) return;
  const NotReady missing = not_ready(basis_, mesh, g);
  if (missing.names.empty()) return;
  if (!state.hung) state.hung = missing.first;
  state.hung_because = text("not ready within start_timeout (", to_text(basis_.spec.start_timeout), ")",
                            basis_.late_since(state.late_before), ": waiting for ", some_of(missing.names));
  if (!is_reserving(state.phase)) return fail(mesh, g);
  to(state, GangPhase::kFailing);  // nothing of it runs
  crews_.forget({mesh, g});
  look(mesh, g);
}

// What failed before a step that none of its generations had reached does not count any longer.
void Gangs::on(const GangProgressed& event) {
  GangState& state = gang(event.mesh, event.gang);
  if (basis_.crew(event.mesh, event.gang).generation != event.generation || !is_running(state.phase)) return;
  // A host may say what it likes.
  const Instant at = std::clamp(event.at, std::min(state.started_at, basis_.now), basis_.now);
  if (!state.first_step) {
    state.first_step = event.step;
    named_step(state.time, *bin_of(state), at);
  }
  if (state.caught_up || !state.furthest || event.step <= *state.furthest) return;
  state.caught_up = true;
  drills_.recovered(event.mesh, event.gang);
  enter(state.time, bin_of(state), at);
  forget_failures(state);
  tell_caught_up(basis_, event, at);
}

void Gangs::on(const GangPaused& event) {
  GangState& state = gang(event.mesh, event.gang);
  if (basis_.crew(event.mesh, event.gang).generation != event.generation || !is_running(state.phase)) return;
  stood_still(state.time, event.from, std::min(event.to, basis_.now));
}

void Gangs::on(const StepsHeard& event) {
  for (const GangStep& heard : event.gangs) {
    GangState& state = gang(heard.mesh, heard.gang);
    if (basis_.crew(heard.mesh, heard.gang).generation == heard.generation)
      state.reached = std::max(state.reached, std::optional(heard.step));
  }
}

void Gangs::retry(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  forget_failures(state);
  if (is_waiting(state.phase)) state.not_before = basis_.now;
  if (state.phase != GangPhase::kFailed) return;
  state.asked = "monarch retry";  // a sidecar that was given up
  start_as_asked(mesh, g);
}

// It has ended as it was asked to; no budget is spent.
void Gangs::start_as_asked(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  Verdict verdict;
  verdict.cause.kind = CauseKind::kRequest;
  verdict.cause.mesh = basis_.mesh(mesh).name;
  verdict.cause.summary = text("started again, asked by ", state.asked);
  verdict.reason = verdict.cause.summary;
  state.asked.clear();
  state.failure = std::move(verdict);
  state.failed_at = basis_.now;
  state.not_before = basis_.now;
  ++state.restarts;
  leave_generation(mesh, g);
}

}  // namespace monarch
