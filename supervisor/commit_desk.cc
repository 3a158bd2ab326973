#include "supervisor/commit_desk.h"

#include <utility>

namespace monarch {

void CommitDesk::hear(HostId host, const RankReport& report, Instant now) {
  if (!report.commit || !core_.has_rank(report.rank)) return;
  const CommitRequest& asked = *report.commit;
  CommitDecision decision = core_.rule_on(host, report.rank, report.generation, asked);
  Last& last = last_[report.rank];
  const MeshId mesh = report.rank.mesh;
  std::uint64_t& recorded = recorded_[{mesh, core_.spec().meshes[mesh.value()].gang_of(report.rank.rank)}];
  const bool again = last.host == host && last.generation == report.generation && last.number == asked.number;
  CommitAnswer answer{.rank = report.rank, .generation = report.generation, .number = asked.number};
  switch (decision.ruling) {
    case CommitRuling::kRefuse:
      if (!again) ++refused_;
      answer.why = std::move(decision.why);
      handlers_.answer(host, answer);
      break;
    case CommitRuling::kTaken:
      if (!handlers_.is_durable(recorded)) return;  // the core's own answer waits for that, too
      answer.committed = true;
      answer.gang = core_.committed_step(report.rank);
      handlers_.answer(host, answer);
      break;
    case CommitRuling::kTake:
      if (last.ticket != 0 && now < last.taken_at + kFloor) return;
      last.taken_at = now;
      last.ticket = handlers_.decide(
          CheckpointCommitted{.host = host, .rank = report.rank, .generation = report.generation, .commit = asked});
      recorded = last.ticket;
      break;
  }
  last.host = host;
  last.generation = report.generation;
  last.number = asked.number;
}

}  // namespace monarch
