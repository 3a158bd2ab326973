// BeatBook, what is said of ranks: what of it is new, and what is told of it.

#include <algorithm>
#include <map>
#include <utility>

#include "supervisor/core/beats/beat_book.h"
#include "supervisor/core/health/progress_watch.h"

namespace monarch {

namespace {

// Within a generation a rank only moves forward, so what a worker can make us write about it is bounded (I22).
bool advances(const RankReport& known, const RankReport& report) {
  if (known.process.generation != report.process.generation) return true;
  return report.phase > known.phase || (!known.ready && report.ready) || (known.pid == 0 && report.pid != 0) ||
         (known.end.kind == EndKind::kNone && report.end.kind != EndKind::kNone) ||
         (!known.output_complete && report.output_complete) || (!known.at_gate && report.at_gate) ||
         (!known.ending && report.ending);
}

// Of one process: a beat with too much to say leaves some ranks' progress out, and one that was overtaken has what was
// before.
const RankProgress& newest_of(const RankProgress& known, const RankProgress& said) {
  return said == RankProgress{} || said.at < known.at ? known : said;
}

void add(TalkDrops& sum, const TalkDrops& more) {
  sum.bad_values += more.bad_values;
  sum.too_long += more.too_long;
  sum.foreign += more.foreign;
  sum.connections += more.connections;
  sum.slow_readers += more.slow_readers;
}

}  // namespace

void BeatBook::note_rank(HostId host, const RankReport& report) {
  // The core would drop it, and it would cost a record (I23).
  const Judgement judged = judge(core_.facts(), host, report);
  if (!judged.counts()) {
    // Of an earlier generation nothing is left to learn but the rest of its output.
    const bool copies = handlers_.on_written && judged.of == ReportOf::kSuperseded;
    if (copies && !copied_.contains(report.process)) handlers_.on_written(report);
    return;
  }
  handlers_.on_written ? note_change(host, as_copied(host, report)) : note_change(host, report);
}

// A copy is behind its host: what the host says of the end of a rank's output is held back until the copy has it.
RankReport BeatBook::as_copied(HostId host, const RankReport& report) {
  Peer& peer = peers_[host.value()];
  const bool done = copied_.contains(report.process);
  if (!done) handlers_.on_written(report);
  if (!report.output_complete || done) {
    peer.not_copied.erase(report.process.rank);
    return report;
  }
  peer.not_copied[report.process.rank] = report;
  RankReport shown = report;
  shown.output_complete = false;
  return shown;
}

void BeatBook::on_copied(const Incarnation& process) {
  copied_.insert(process);
  const std::optional<HostId> host = where_ran(core_.facts(), process);
  if (!host) return;
  const auto held = peers_[host->value()].not_copied.find(process.rank);
  if (held == peers_[host->value()].not_copied.end() || held->second.process != process) return;
  const RankReport report = held->second;
  note_rank(*host, report);
}

void BeatBook::note_change(HostId host, const RankReport& report) {
  Peer& peer = peers_[host.value()];
  const auto known = peer.ranks.find(report.process.rank);
  if (known != peer.ranks.end() && !advances(known->second.report, report)) {
    return keep(host, report, known->second.report);
  }
  RankChanged change{.host = host,
                     .report = report,
                     .ended_at = liveness_.to_ours(host, report.ended_at),
                     .uncertainty = liveness_.uncertainty(host)};
  if (report.evidence_at != Instant::never()) change.evidence_at = liveness_.to_ours(host, report.evidence_at);
  RankReport kept = report;
  const bool goes_on =
      known != peer.ranks.end() && known->second.report.process.generation == report.process.generation;
  if (goes_on) kept.progress = newest_of(known->second.report.progress, report.progress);
  if (report.end.kind != EndKind::kNone) {
    change.step = kept.progress.step;
    if (change.step) change.step_at = liveness_.to_ours(host, kept.progress.at);
  }
  if (report.phase == RankPhase::kWedged) change.grants_until = peer.grants_until;
  // Of an exit the number says all: what is told beside one is ours (JobCore::judged), and no host's to say.
  const bool says_why = report.end.kind == EndKind::kNotExecuted || report.end.kind == EndKind::kSetupFailed;
  change.report.end.detail = says_why ? cut(report.end.detail) : std::string();
  // What a rank says of itself, and whether it stands still, is for status and not for the journal.
  change.report.progress = {};
  change.report.talk_drops = {};
  change.report.held = false;
  change.report.standstill = Standstill::kNone;
  change.report.commit.reset();
  peer.ranks[report.process.rank] = {.report = std::move(kept), .ticket = handlers_.decide(change)};
  note_step(host, report);
}

// Nothing of it is for the journal, but a step.
void BeatBook::keep(HostId host, const RankReport& report, RankReport& last) {
  const std::uint64_t written = last.stdout_bytes + last.stderr_bytes;
  last.progress = newest_of(last.progress, report.progress);
  last.talk_drops = report.talk_drops;
  last.held = report.held;
  last.standstill = report.standstill;
  last.stdout_bytes = report.stdout_bytes;
  last.stderr_bytes = report.stderr_bytes;
  note_step(host, report);
  if (last.stdout_bytes + last.stderr_bytes > written && handlers_.on_output) handlers_.on_output();
}

// The first of a generation, and the first beyond all that were reached before: two of a generation at most. And what
// was a pause, as there is one in a second at most.
void BeatBook::note_step(HostId host, const RankReport& report) {
  const RankProgress& said = report.progress;
  if (!said.first || report.phase != RankPhase::kRunning || !core_.facts().has_rank(report.process.rank)) return;
  const GangId gang = core_.spec().meshes[report.process.rank.mesh.value()].gang_of(report.process.rank.rank);
  const GangState& state = core_.facts().gang(report.process.rank.mesh, gang);
  if (!is_running(state.phase) ||
      core_.facts().crew(report.process.rank.mesh, gang).generation != report.process.generation)
    return;
  const auto decide = [&](const StepMark& mark) {
    (void)handlers_.decide(GangProgressed{.mesh = report.process.rank.mesh,
                                          .gang = gang,
                                          .generation = report.process.generation,
                                          .step = mark.step,
                                          .at = liveness_.to_ours(host, mark.at)});
  };
  if (!state.first_step) decide(*said.first);
  if (said.past && state.furthest && !state.caught_up && said.past->step > *state.furthest) decide(*said.past);
  if (!said.step) return;
  const auto paused = pauses_.heard(report.process.rank.mesh, gang, report.process.generation, *said.step,
                                    liveness_.to_ours(host, said.at));
  if (paused) (void)handlers_.decide(*paused);
}

void BeatBook::tell_steps(HostId host) {
  std::map<std::pair<MeshId, GangId>, GangStep> furthest;
  for (const auto& [id, known] : peers_[host.value()].ranks) {
    const std::optional<std::uint64_t>& step = known.report.progress.step;
    if (!step || !core_.facts().has_rank(id)) continue;
    const GangId gang = core_.spec().meshes[id.mesh.value()].gang_of(id.rank);
    const GangState& state = core_.facts().gang(id.mesh, gang);
    const Generation generation = core_.facts().crew(id.mesh, gang).generation;
    if (generation != known.report.process.generation || state.reached >= step) continue;
    GangStep& heard = furthest[{id.mesh, gang}];
    heard = {.mesh = id.mesh, .gang = gang, .generation = generation, .step = std::max(heard.step, *step)};
  }
  if (furthest.empty()) return;
  StepsHeard heard;
  for (const auto& [place, step] : furthest) heard.gangs.push_back(step);
  (void)handlers_.decide(heard);
}

void BeatBook::add_progress(JobStatus& status, Instant now) const {
  for (std::uint32_t m = 0; m < status.meshes.size(); ++m) {
    for (RankStatus& shown : status.meshes[m].ranks) {
      const RankId id{MeshId(m), Rank(shown.rank)};
      const HostId host = core_.placement().host_of(id);
      const auto known = peers_[host.value()].ranks.find(id);
      if (known == peers_[host.value()].ranks.end()) continue;
      const RankReport& report = known->second.report;
      if (report.process.generation.counter != shown.generation) continue;
      const bool suspended =
          report.held || report.standstill == Standstill::kStopped || report.standstill == Standstill::kFrozen;
      if (suspended && shown.phase == "running") shown.phase = "suspended";
      shown.standstill = name_of(report.standstill);
      add(status.hosts[host.value()].talk_drops, report.talk_drops);
      if (report.progress == RankProgress{}) continue;
      shown.progress = report.progress;
      const Duration age = now - liveness_.to_ours(host, report.progress.at);
      shown.progress_age_milliseconds = std::max<std::int64_t>(0, age.count_milliseconds());
    }
  }
}

}  // namespace monarch
