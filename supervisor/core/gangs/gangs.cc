#include "supervisor/core/gangs/gangs.h"

#include <algorithm>
#include <utility>

#include "supervisor/core/crew/words.h"
#include "supervisor/core/facts/blame.h"
#include "supervisor/core/facts/claims.h"
#include "supervisor/core/facts/gangs.h"
#include "supervisor/core/facts/reports.h"
#include "supervisor/core/recovery/failure_details.h"
#include "supervisor/core/state/gang_life.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// A program that was executed is ready where nothing else is asked for, also if it has ended since.
bool says_ready(const MeshSpec& mesh, const RankReport& report) {
  if (report.ready || mesh.ready.kind != ReadyKind::kExec) return report.ready;
  return report.phase == RankPhase::kRunning || report.end.kind == EndKind::kExited;
}

// Who serves and ends by itself has failed, and the job would end with the code of that.
RankEnd judged(const MeshSpec& mesh, RankEnd end) {
  const bool quit = mesh.serves && end.kind == EndKind::kExited && end.value == 0 && !end.after_our_signal;
  if (quit) {
    end.value = kExitQuit;
    end.detail = "it exited with 0, though nobody had told it to end";
  }
  const bool cut_off = mesh.serves && end.kind == EndKind::kExited && end.value == kExitCutOff;
  if (cut_off) end.detail = text("exit code ", kExitCutOff, ": no call reached it any more, as its output says");
  return end;
}

void record_end(const MeshSpec& mesh, const RankChanged& event, GangState& state, RankState& slot) {
  slot.reaped = true;
  slot.end = judged(mesh, event.report.end);
  slot.ended_at = event.ended_at;
  state.ends.push_back({.process = event.report.process,
                        .host = event.host,
                        .pid = event.report.pid,
                        .end = slot.end,
                        .ended_at = event.ended_at,
                        .uncertainty = event.uncertainty,
                        .evidence_at = event.evidence_at});
  slot.step = event.step;
  state.reached = std::max(state.reached, event.step);
}

// Of a program that names no steps, being ready for so long is progress.
constexpr Duration kReadyIsProgress = Duration::seconds(60);

void note_ready(GangState& state, Instant now) {
  state.was_ready = true;
  state.ever_ready = true;
  state.progress_deadline = Instant::never();
  const bool counts = !state.failures.empty() || state.out_of_memory;
  if (counts && !state.furthest) state.progress_deadline = now + kReadyIsProgress;
}

// However its ranks ended: they were told to, or were killed by who takes their hosts.
void ended_as_foreseen(const CoreBasis& job, GangState& state, MeshId mesh, GangId g) {
  to(state, GangPhase::kFailed);
  state.failure.reset();
  job.say_of_gang(mesh, g, EventKind::kGangEnded, Severity::kInfo,
                  text("has ended, and is not started again: ", job.state.foreseen->why));
}

}  // namespace

void Gangs::on(const RankChanged& event) {
  // The one place where reports of other generations, or from hosts that should not have the rank, are dropped.
  const Judgement news = judge(basis_, event.host, event.report);
  if (!news.counts() || !basis_.has_rank(event.report.process.rank)) return;
  const RankId id = event.report.process.rank;
  const CrewPlace place = *crew_of(basis_.spec, id);
  last_words_.heard(event.host, event.report);
  if (news.of != ReportOf::kOfNow) return;
  const GangId g = basis_.mesh(id.mesh).gang_of(id.rank);
  GangState& state = gang(id.mesh, g);
  RankState& slot = rank(id);

  const CrewMember& member = basis_.member(id);
  if (event.report.output_complete && !member.output_complete) {
    slot.stdout_bytes = event.report.stdout_bytes;
    slot.stderr_bytes = event.report.stderr_bytes;
    basis_.waits_due = true;  // its host may be free for others now
  }
  // An error file is found when its rank has ended.
  for (EndedRank& end : state.ends) {
    if (end.process.rank == id && event.evidence_at != Instant::never()) end.evidence_at = event.evidence_at;
  }
  const bool wedged = lives(member.stage) && event.report.phase == RankPhase::kWedged;
  if (wedged) {
    hosts_.wedged(event, basis_.name_of(id));
    fence_by(state, event.host);
    // Its end will never be known: without a failure of its own the gang fails by its host, or it would pass for done.
    if (event.report.end.kind == EndKind::kNone && runs(state.phase)) {
      fail_by(id.mesh, g, event.host);
    }
  }
  if (!crews_.heard(place, event.report)) return;

  slot.ready = slot.ready || says_ready(basis_.mesh(id.mesh), event.report);
  slot.ending = slot.ending || event.report.ending;
  if (event.report.end.kind != EndKind::kNone && !slot.reaped) record_end(basis_.mesh(id.mesh), event, state, slot);
  if (event.report.phase == RankPhase::kEnded || event.report.phase == RankPhase::kWedged) {
    basis_.waits_due = true;  // nobody of its gang may live on this host any more, though some do elsewhere
  }
  if (slot.reaped && is_failure(slot.end)) fail(id.mesh, g, event.step ? event.step_at : Instant::never());
  look(id.mesh, g);
}

void Gangs::fail(MeshId mesh, GangId g, Instant alive_at) {
  GangState& state = gang(mesh, g);
  if (!runs(state.phase)) return;
  if (basis_.state.foreseen) return;  // those of it that live may save what they have
  const bool worked = state.time.bin == TimeBin::kNew || state.time.bin == TimeBin::kRedone;
  if (worked && alive_at < basis_.now) enter(state.time, TimeBin::kStill, alive_at);
  to(state, GangPhase::kFailing);
  state.cause_deadline = basis_.now + cause_window(basis_);
  tell_peers_of(basis_, mesh, g, "peer_lost");
  const StopPolicy& policy = basis_.mesh(mesh).stop;
  stop(mesh, g, policy.signal, policy.after_failure);
}

void Gangs::fail_by(MeshId mesh, GangId g, HostId host, Instant alive_at) {
  GangState& state = gang(mesh, g);
  state.host_lost = true;
  state.lost_host = host;
  fail(mesh, g, alive_at);
}

// Moves a gang on once its ranks have: to running, to ready, to done, or to its end.
void Gangs::look(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  if (has_ended(state.phase) || waits(state.phase) || is_idle(state.phase)) return;
  const MeshSpec& spec = basis_.mesh(mesh);
  bool started = true;
  bool placed = true;  // it is known of all whether they have a process
  bool ready = true;
  bool ended = true;
  const Crew& crew = basis_.crew(mesh, g);
  const std::uint32_t first = basis_.placement.range_of(mesh, g).first;
  for (std::uint32_t i = 0; i < crew.members.size(); ++i) {
    const RankState& slot = rank({mesh, Rank(first + i)});
    const CrewMember& member = crew.members[i];
    started = started && member.stage != RankStage::kStarting;
    placed = placed && (member.pid != 0 || !lives(member.stage));
    ready = ready && (slot.ready || (!spec.sidecar && slot.reaped && !is_failure(slot.end)));
    ended = ended && !lives(member.stage);
  }
  (void)crews_.look({mesh, g});
  if (started && placed && standby_of(basis_, mesh, g))
    placed_.push_back({.mesh = mesh, .gang = g, .members = crew.members});
  if (state.phase == GangPhase::kStarting && started) {
    to(state, GangPhase::kRunning);
    basis_.say_of_gang(mesh, g, EventKind::kGangRunning, Severity::kInfo,
                       text("is running", since_failure(basis_, state)),
                       {{"launch_ms", text((basis_.now - state.started_at).count_milliseconds())}});
    if (recovers(state)) tell_peers_of(basis_, mesh, g, "peer_back");
    state.failure.reset();
  }
  if (is_running(state.phase) && ready && !state.was_ready) {
    note_ready(state, basis_.now);
    if (!state.furthest) drills_.recovered(mesh, g);
    basis_.waits_due = true;
    if (spec.ready.kind != ReadyKind::kExec)
      basis_.say_of_gang(mesh, g, EventKind::kGangReady, Severity::kInfo, "is ready");
  }
  if (!ended) {
    const std::optional<std::size_t> quit = spec.sidecar ? ended_unready(basis_, state) : std::nullopt;
    if (quit && is_needed(spec, state) && !basis_.state.foreseen)
      end_.fail(blame_sidecar(basis_, mesh, g, blame_rank(basis_, mesh, g, *quit)));
    if (quit && state.ever_ready)
      basis_.waits_due = true;  // the job goes on without it: nobody waits for it any longer
    return;
  }
  basis_.waits_due = true;  // others may have waited until nothing lives on a host of it
  switch (state.phase) {
    case GangPhase::kRunning:
      if (basis_.state.foreseen && !all_ended_well(basis_, mesh, g)) return ended_as_foreseen(basis_, state, mesh, g);
      to(state, GangPhase::kDone);
      basis_.waits_due = true;
      drills_.recovered(mesh, g);
      basis_.say_of_gang(mesh, g, EventKind::kGangDone, Severity::kInfo, "is done");
      if (is_needed(spec, state) && !basis_.state.foreseen) end_.fail(blame_sidecar(basis_, mesh, g, {}));
      return;
    case GangPhase::kFailing:
      if (basis_.state.foreseen && !state.cause_decided) return ended_as_foreseen(basis_, state, mesh, g);
      decide_cause(mesh, g);
      if (rests(basis_, mesh, g) || (recovers(state) && !basis_.starts_nothing())) return leave_generation(mesh, g);
      to(state, GangPhase::kFailed);
      return;
    case GangPhase::kStopping:
      if (rests(basis_, mesh, g)) return leave_generation(mesh, g);
      if (!state.asked.empty() && !basis_.starts_nothing()) return start_as_asked(mesh, g);
      to(state, GangPhase::kStopped);
      basis_.say_of_gang(mesh, g, EventKind::kGangStopped, Severity::kInfo, "has stopped");
      return;
    case GangPhase::kWaiting:
    case GangPhase::kReserving:
    case GangPhase::kStarting:
    case GangPhase::kDone:
    case GangPhase::kFailed:
    case GangPhase::kStopped:
    case GangPhase::kParked:
    case GangPhase::kIdle: return;  // left above, or moved on already
  }
}

void Gangs::decide_cause(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  if (state.cause_decided) return;
  state.cause_deadline = Instant::never();
  if (basis_.state.foreseen) return;  // it has ended by that, and its end is told with that of its last rank
  state.cause_decided = true;
  const MeshSpec& spec = basis_.mesh(mesh);
  const std::optional<std::size_t> first = first_cause(state.ends);
  // Nobody wants another try of what cannot be executed.
  const bool never_ran =
      first && !is_lack_of_host(state.ends[*first].end) &&
      (state.ends[*first].end.kind == EndKind::kNotExecuted || state.ends[*first].end.kind == EndKind::kSetupFailed);
  const bool hung = state.hung && !state.host_lost && !never_ran;
  Verdict verdict = hung                                        ? blame_hung(basis_, mesh, g)
                    : (state.host_lost && !never_ran) || !first ? blame_host(basis_, state)
                                                                : blame_rank(basis_, mesh, g, *first);
  verdict.cause.mesh = spec.name;
  verdict.cause.generation = basis_.crew(mesh, g).generation.counter;
  const Recovery next = recovery_of(mesh, g, verdict, first_to_exit(state.ends));
  verdict.cause.rule = next.rule;
  const bool goes_on = next.remedy != Remedy::kFail;
  if (spec.sidecar && !goes_on && !is_needed(spec, state)) {
    verdict.cause.rule = kDecidesNothing;
  }
  // A host may hold several gangs; a rank is of one.
  const std::string who =
      verdict.cause.kind == CauseKind::kHost ? text(spec.name, ": gang ", g.value(), ": ") : std::string();
  JobEvent event = basis_.event(EventKind::kGangFailed, spec.sidecar || goes_on ? Severity::kWarning : Severity::kError,
                                text(who, verdict.reason, " [", verdict.cause.rule, "]"));
  event.details = failure_details(g, verdict.cause, hung, next);
  event.host = verdict.cause.host;
  event.mesh = verdict.cause.mesh;
  event.rank = verdict.cause.rank;
  event.generation = verdict.cause.generation;
  event.pid = verdict.cause.pid;
  drills_.add_failure(event, mesh, g);
  drills_.failed(mesh, g);
  basis_.emit(std::move(event));
  if (goes_on) return note_failure(mesh, g, std::move(verdict), next);
  state.failure.reset();
  if (!spec.sidecar) return end_.fail(std::move(verdict));
  if (is_needed(spec, state)) end_.fail(blame_sidecar(basis_, mesh, g, std::move(verdict)));
}

// They are to end: their host is lost, and may be about to be proven to have ended.
void Gangs::lose_host(HostId id, std::optional<Duration> silence) {
  if (!basis_.placement.holds_ranks(id)) return;
  basis_.each_gang_on(id, [this](MeshId m, GangId g) { give_up_reservation(m, g); });
  basis_.each_gang([&](MeshId m, GangId g) {
    const GangState& state = gang(m, g);
    const bool alive = runs(state.phase) || (is_failing(state.phase) && !state.cause_decided);
    const std::vector<RankId> here = basis_.placement.ranks_of(m, g, id);
    const bool held_ranks =
        std::any_of(here.begin(), here.end(), [this](const RankId& r) { return lives(basis_.member(r).stage); });
    if (!alive || !held_ranks) return;
    fail_by(m, g, id, silence ? basis_.now - *silence : Instant::never());
  });
}

// Of gangs that fail because of this host.
void Gangs::decide_causes_within(HostId id, Duration patience) {
  basis_.each_gang([&](MeshId m, GangId g) {
    GangState& state = gang(m, g);
    const bool open = is_failing(state.phase) && !state.cause_decided;
    if (open && state.host_lost && state.lost_host == id) state.cause_deadline = basis_.now + patience;
  });
}

// The host has ended, or is given up: nothing more will be heard of its ranks.
void Gangs::host_gone(HostId id) {
  basis_.each_gang([&](MeshId m, GangId g) {
    const bool changed = crews_.lose({m, g}, id);
    if (changed && basis_.host(id).fence > basis_.now) fence_by(gang(m, g), id);
    if (changed) look(m, g);
  });
}

void Gangs::look_at_times(MeshId mesh, GangId g) {
  if (gang(mesh, g).cause_deadline <= basis_.now) {
    // Whoever was ending before we stopped the gang may have begun it. It has until its keeper calls it wedged.
    const std::vector<RankId> ranks = basis_.placement.ranks_of(mesh, g);
    const bool awaited = std::any_of(ranks.begin(), ranks.end(), [this](const RankId& id) {
      return rank(id).ending && !rank(id).reaped && lives(basis_.member(id).stage);
    });
    if (awaited) {
      gang(mesh, g).cause_deadline = basis_.now + cause_window(basis_);
    } else {
      decide_cause(mesh, g);
    }
  }
  if (gang(mesh, g).progress_deadline <= basis_.now) progress_is_due(mesh, g);
}

void Gangs::returned() {
  basis_.each_gang([this](MeshId m, GangId g) {
    GangState& state = gang(m, g);
    not_before(state.cause_deadline, basis_.now + kEndsArriveWithin);
    const Duration patience = std::min(basis_.spec.start_timeout, kAnswersWithin);
    if (!state.was_ready) not_before(state.progress_deadline, basis_.now + patience);
  });
}

GangState& Gangs::gang(MeshId mesh, GangId gang) { return mine_[mesh.value()].gangs[gang.value()]; }

RankState& Gangs::rank(RankId id) { return mine_[id.mesh.value()].ranks[id.rank.value()]; }

}  // namespace monarch
