// Bugs that are planted beside the BeatBook: a beat as they read it, and an answer as they give it.

#include <algorithm>
#include <vector>

#include "tests/sim/checker.h"
#include "tests/sim/supervisor.h"
#include "tests/sim/world.h"
#include "tests/supervisor/core/state_parts.h"

namespace monarch::sim {

// As its host said it: what a planted bug believes is another one.
RankReport Supervisor::said_of(const RankReport& believed) const {
  if (heard_.beat == nullptr) return believed;
  const std::vector<RankReport>& said = heard_.beat->content.ranks;
  for (std::size_t i = 0; heard_.as_read != nullptr && i < said.size(); ++i) {
    const RankReport& read = heard_.as_read->content.ranks[i];
    const bool is_it = read.process == believed.process && read.phase == believed.phase && read.pid == believed.pid &&
                       read.ready == believed.ready && read.end.kind == believed.end.kind;
    if (is_it) return said[i];
  }
  const auto found = std::find_if(said.begin(), said.end(),
                                  [&](const RankReport& one) { return one.process.rank == believed.process.rank; });
  return found != said.end() ? *found : believed;
}

// The beat as planted bugs read it.
Beat Supervisor::planted(HostId host, const Beat& beat) {
  Beat read = beat;
  for (RankReport& report : read.content.ranks) {
    if (!world_.checker->is_of_spec(report.process.rank)) continue;
    const Generation current = core_->facts().crew_with(report.process.rank).generation;
    const bool believes = world_.mutant(Mutant::kBelieveAnyGeneration);
    if (believes && report.process.generation > current) report.process.generation = current;
    const bool counts_earlier = world_.mutant(Mutant::kCountEarlier);
    if (counts_earlier && report.process.generation < current) report.process.generation = current;
    const HostId where = core_->placement().host_of(report.process.rank);
    if (world_.mutant(Mutant::kBelieveAnybody) && where != host) {
      (void)book_->on_beat(where, Beat{.seq = beat.seq, .sent_at = beat.sent_at, .content = {.ranks = {report}}},
                           now());
    }
  }
  return read;
}

// What they tell the core instead; false: nothing.
bool Supervisor::plant(CoreEvent& event) const {
  if (world_.mutant(Mutant::kLoseStep)) {
    if (auto* change = std::get_if<RankChanged>(&event)) change->step.reset();
  }
  if (world_.mutant(Mutant::kNeverJudge) && std::holds_alternative<HostSilent>(event)) return false;
  if (world_.mutant(Mutant::kNoLeaseWait)) {
    if (auto* silent = std::get_if<HostSilent>(&event)) silent->grants_until = {};
    if (auto* distrusted = std::get_if<HostDistrusted>(&event)) distrusted->grants_until = {};
    if (auto* change = std::get_if<RankChanged>(&event)) change->grants_until = {};
  }
  return true;
}

// And what they add to the answer.
void Supervisor::plant(HostId host, const Beat& beat, BeatBook::Answer& answer) {
  if (world_.mutant(Mutant::kNeverResend)) answer.again.clear();
  for (const RankReport& report : beat.content.ranks) {
    if (world_.mutant(Mutant::kAckAnything)) answer.ack.granted.push_back(report.process);
    if (world_.mutant(Mutant::kGrantSuperseded) && judge(core_->facts(), host, report).of == ReportOf::kSuperseded) {
      answer.ack.granted.push_back(report.process);
    }
    const bool over = report.phase == RankPhase::kEnded && report.output_complete;
    if (over && world_.mutant(Mutant::kForgetBeforeDurable)) answer.ack.forget.push_back(report.process);
    const bool all_durable = durable_ticket_ == last_ticket_;
    if (over && all_durable && world_.mutant(Mutant::kForgetUncopied)) answer.ack.forget.push_back(report.process);
    if (world_.mutant(Mutant::kRecordAll) && judge(core_->facts(), host, report).counts()) {
      (void)heard(RankChanged{.host = host, .report = report, .ended_at = liveness().to_ours(host, report.ended_at)});
    }
  }
}

void Supervisor::hear_commit(HostId host, RankReport report) {
  if (world_.mutant(Mutant::kCommitAnyGeneration) && core_->facts().has_rank(report.process.rank)) {
    const Generation current = core_->facts().crew_with(report.process.rank).generation;
    if (report.process.generation > current) report.process.generation = current;  // earlier ones have their late words
    host = core_->placement().host_of(report.process.rank);
  }
  commits_->hear(host, report, now());
}

// A planted bug: each host by itself.
void Supervisor::judge_without_brake() {
  std::vector<HostVerdict> verdicts;
  for (std::uint32_t i = 0; i < world_.hosts.size(); ++i) {
    const Duration silence = liveness().silence(HostId(i), now());
    if (liveness().health(HostId(i)) != HostHealth::kSuspect || silence < core_->spec().supervision.lost_after)
      continue;
    verdicts.push_back({.host = HostId(i), .health = HostHealth::kSilent, .silence = silence});
  }
  world_.checker->judges_together(verdicts, liveness());
  for (const HostVerdict& verdict : verdicts) {
    world_.checker->judges(verdict);
    (void)heard(HostSilent{
        .host = verdict.host, .silence = verdict.silence, .grants_until = book_->grants_until(verdict.host)});
  }
}

}  // namespace monarch::sim
