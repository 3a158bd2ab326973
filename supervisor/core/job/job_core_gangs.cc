// Gangs: from their START to their last rank's end, and what their failure means.

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <variant>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/recovery/failure_details.h"
#include "supervisor/core/state/gang_life.h"
#include "transport/base/assert.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/messages/describe_end.h"

namespace monarch {

namespace {

// A program that was executed is ready where nothing else is asked for, also if it has ended since.
bool says_ready(const MeshSpec& mesh, const RankReport& report) {
  if (report.ready || mesh.ready.kind != ReadyKind::kExec) return report.ready;
  return report.phase == RankPhase::kRunning || report.end.kind == EndKind::kExited;
}

}  // namespace

void JobCore::on(const RankChanged& event) {
  // The one place where reports of other generations, or from hosts that should not have the rank, are dropped.
  const Judgement news = judge(basis_, event.host, event.report);
  if (!news.counts()) return;
  const RankId id = event.report.process.rank;
  const CrewPlace place = *crew_of(spec_, id);
  if (!basis_.has_rank(id)) return on_crew_changed(event, place);
  last_words_.heard(event.host, event.report);
  if (news.of != ReportOf::kOfNow) return;
  const GangId g = mesh_spec(id.mesh).gang_of(id.rank);
  GangState& state = gang(id.mesh, g);
  RankState& slot = rank(id);

  const CrewMember& member = basis_.member(id);
  if (event.report.output_complete && !member.output_complete) {
    slot.stdout_bytes = event.report.stdout_bytes;
    slot.stderr_bytes = event.report.stderr_bytes;
    waits_due_ = true;  // its host may be free for others now
  }
  // An error file is found when its rank has ended.
  for (EndedRank& end : state.ends) {
    if (end.process.rank == id && event.evidence_at != Instant::never()) end.evidence_at = event.evidence_at;
  }
  const bool wedged = lives(member.stage) && event.report.phase == RankPhase::kWedged;
  if (wedged) {
    hosts_.wedged(event, text(mesh_spec(id.mesh).name, "/", id.rank.value()));
    fence_by(state, event.host);
    // Its end will never be known: without a failure of its own the gang fails by its host, or it would pass for done.
    if (event.report.end.kind == EndKind::kNone && runs(state.phase)) {
      state.host_lost = true;
      state.lost_host = event.host;
      gang_failed(id.mesh, g);
    }
  }
  if (!crews_.heard(place, event.report)) return;

  slot.ready = slot.ready || says_ready(mesh_spec(id.mesh), event.report);
  slot.ending = slot.ending || event.report.ending;
  if (event.report.end.kind != EndKind::kNone && !slot.reaped) record_end(event, state, slot);
  if (event.report.phase == RankPhase::kEnded || event.report.phase == RankPhase::kWedged) {
    waits_due_ = true;  // nobody of its gang may live on this host any more, though some do elsewhere
  }
  if (slot.reaped && is_failure(slot.end)) gang_failed(id.mesh, g, event.step ? event.step_at : Instant::never());
  check_gang(id.mesh, g);
}

// Who serves and ends by itself has failed, and the job would end with the code of that.
RankEnd JobCore::judged(const MeshSpec& mesh, RankEnd end) {
  const bool quit = mesh.serves && end.kind == EndKind::kExited && end.value == 0 && !end.after_our_signal;
  if (quit) {
    end.value = kExitQuit;
    end.detail = "it exited with 0, though nobody had told it to end";
  }
  const bool cut_off = mesh.serves && end.kind == EndKind::kExited && end.value == kExitCutOff;
  if (cut_off) end.detail = text("exit code ", kExitCutOff, ": no call reached it any more, as its output says");
  return end;
}

void JobCore::record_end(const RankChanged& event, GangState& state, RankState& slot) {
  slot.reaped = true;
  slot.end = judged(mesh_spec(event.report.process.rank.mesh), event.report.end);
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

void JobCore::gang_failed(MeshId mesh, GangId g, Instant alive_at) {
  GangState& state = gang(mesh, g);
  if (!runs(state.phase)) return;
  if (state_.foreseen) return;  // those of it that live may save what they have
  const bool worked = state.time.bin == TimeBin::kNew || state.time.bin == TimeBin::kRedone;
  if (worked && alive_at < now_) enter(state.time, TimeBin::kStill, alive_at);
  to(state, GangPhase::kFailing);
  state.cause_deadline = now_ + cause_window(basis_);
  tell_peers_of(basis_, mesh, g, "peer_lost");
  const StopPolicy& policy = mesh_spec(mesh).stop;
  stop_gang(mesh, g, policy.signal, policy.after_failure);
}

// Moves a gang on once its ranks have: to running, to ready, to done, or to its end.
void JobCore::check_gang(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  if (has_ended(state.phase) || waits(state.phase)) return;
  const MeshSpec& spec = mesh_spec(mesh);
  bool started = true;
  bool placed = true;  // it is known of all whether they have a process
  bool ready = true;
  bool ended = true;
  const Crew& crew = basis_.crew(mesh, g);
  const std::uint32_t first = placement_.range_of(mesh, g).first;
  for (std::uint32_t i = 0; i < crew.members.size(); ++i) {
    const RankState& slot = rank({mesh, Rank(first + i)});
    const CrewMember& member = crew.members[i];
    started = started && member.stage != RankStage::kStarting;
    placed = placed && (member.pid != 0 || !lives(member.stage));
    ready = ready && (slot.ready || (!spec.sidecar && slot.reaped && !is_failure(slot.end)));
    ended = ended && !lives(member.stage);
  }
  (void)crews_.look({mesh, g});
  if (started && placed) standbys_.is_placed(mesh, g);
  settle_crews();
  if (state.phase == GangPhase::kStarting && started) {
    to(state, GangPhase::kRunning);
    basis_.say_of_gang(mesh, g, EventKind::kGangRunning, Severity::kInfo,
                       text("is running", since_failure(basis_, state)),
                       {{"launch_ms", text((now_ - state.started_at).count_milliseconds())}});
    if (recovers(state)) tell_peers_of(basis_, mesh, g, "peer_back");
    state.failure.reset();
  }
  if (is_running(state.phase) && ready && !state.was_ready) {
    note_ready(state);
    if (!state.furthest) drills_.recovered(mesh, g);
    waits_due_ = true;
    if (spec.ready.kind != ReadyKind::kExec)
      basis_.say_of_gang(mesh, g, EventKind::kGangReady, Severity::kInfo, "is ready");
  }
  if (!ended) {
    const std::optional<std::size_t> quit = spec.sidecar ? ended_unready(basis_, state) : std::nullopt;
    if (quit && !state.ever_ready && !state_.foreseen) sidecar_never_ready(mesh, g, blame_rank(basis_, mesh, g, *quit));
    if (quit && state.ever_ready) waits_due_ = true;  // the job goes on without it: nobody waits for it any longer
    return;
  }
  waits_due_ = true;  // others may have waited until nothing lives on a host of it
  switch (state.phase) {
    case GangPhase::kRunning:
      if (state_.foreseen && !all_ended_well(basis_, mesh, g)) return ended_as_foreseen(mesh, g);
      to(state, GangPhase::kDone);
      waits_due_ = true;
      drills_.recovered(mesh, g);
      basis_.say_of_gang(mesh, g, EventKind::kGangDone, Severity::kInfo, "is done");
      if (spec.sidecar && !state.ever_ready && !state_.foreseen) sidecar_never_ready(mesh, g, {});
      return;
    case GangPhase::kFailing:
      if (state_.foreseen && !state.cause_decided) return ended_as_foreseen(mesh, g);
      decide_cause(mesh, g);
      if (recovers(state) && !basis_.starts_nothing()) return await_next(mesh, g);
      to(state, GangPhase::kFailed);
      return;
    case GangPhase::kStopping:
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
    case GangPhase::kParked: return;  // left above, or moved on already
  }
}

// Whoever was ending before we stopped the gang may have begun it. It has until its keeper calls it wedged.
void JobCore::cause_is_due(MeshId mesh, GangId g) {
  const std::vector<RankId> ranks = placement_.ranks_of(mesh, g);
  const bool awaited = std::any_of(ranks.begin(), ranks.end(), [this](const RankId& id) {
    return rank(id).ending && !rank(id).reaped && lives(basis_.member(id).stage);
  });
  if (!awaited) return decide_cause(mesh, g);
  gang(mesh, g).cause_deadline = now_ + cause_window(basis_);
}

void JobCore::decide_cause(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  if (state.cause_decided) return;
  state.cause_deadline = Instant::never();
  if (state_.foreseen) return;  // it has ended by that, and its end is told with that of its last rank
  state.cause_decided = true;
  const MeshSpec& spec = mesh_spec(mesh);
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
  if (spec.sidecar && !goes_on && state.ever_ready) {
    verdict.cause.rule = "a sidecar does not decide: the job goes on without it";
  }
  // A host may hold several gangs; a rank is of one.
  const std::string who =
      verdict.cause.kind == CauseKind::kHost ? text(spec.name, ": gang ", g.value(), ": ") : std::string();
  JobEvent event = event_of(EventKind::kGangFailed, spec.sidecar || goes_on ? Severity::kWarning : Severity::kError,
                            text(who, verdict.reason, " [", verdict.cause.rule, "]"));
  event.details = failure_details(g, verdict.cause, hung, next);
  event.host = verdict.cause.host;
  event.mesh = verdict.cause.mesh;
  event.rank = verdict.cause.rank;
  event.generation = verdict.cause.generation;
  event.pid = verdict.cause.pid;
  drills_.add_failure(event, mesh, g);
  drills_.failed(mesh, g);
  emit(std::move(event));
  if (goes_on) return note_failure(mesh, g, std::move(verdict), next);
  state.failure.reset();
  if (!spec.sidecar) return end_.fail(std::move(verdict));
  if (!state.ever_ready) sidecar_never_ready(mesh, g, std::move(verdict));
}

// Meshes that are no sidecars wait for every sidecar: without this one they never start. The exit code of a rank is the
// job's, but a 0: that it has ended well is no success of the job. Who wrote actors wrote of no sidecar: the words of
// their ranks are told as any other's.
void JobCore::sidecar_never_ready(MeshId mesh, GangId g, Verdict verdict) {
  const bool of_a_rank = verdict.cause.kind == CauseKind::kRank;
  if (!of_a_rank || verdict.exit_code == kExitOk) verdict.exit_code = kExitUnreachable;
  const bool serves = mesh_spec(mesh).serves;
  if (!of_a_rank || !serves) verdict.cause.kind = CauseKind::kStart;
  verdict.cause.mesh = mesh_spec(mesh).name;
  verdict.cause.generation = basis_.crew(mesh, g).generation.counter;
  const std::string end = verdict.cause.summary.empty() ? "exit code 0" : verdict.cause.summary;
  const std::string who = verdict.cause.rank ? text(mesh_spec(mesh).name, "/", *verdict.cause.rank, " on ",
                                                    verdict.cause.host, " (pid ", verdict.cause.pid, ")")
                                             : mesh_spec(mesh).name;
  const std::string whose = serves ? std::string() : text("sidecar ", mesh_spec(mesh).name, ' ');
  verdict.cause.summary = text(whose, "ended before it was ready: ", end);
  const std::string why = serves && !verdict.cause.rule.empty() ? text(verdict.cause.rule, "; ") : std::string();
  verdict.cause.rule = why + "the other meshes wait for it: fail";
  verdict.reason = text(serves ? "" : "sidecar ", who, " ended before it was ready: ", end);
  end_.fail(std::move(verdict));
}

}  // namespace monarch
