#include "supervisor/workers/commit_desk.h"

#include <algorithm>
#include <utility>

#include "transport/base/text.h"

namespace monarch {

void CommitDesk::hear(HostId host, const RankReport& report, Instant now) {
  if (!report.commit || !core_.facts().has_rank(report.process.rank)) return;
  const CommitRequest& asked = *report.commit;
  CommitDecision decision = rule_on(core_.facts(), host, report.process, asked);
  Last& last = last_[report.process.rank];
  const MeshId mesh = report.process.rank.mesh;
  std::uint64_t& recorded = recorded_[{mesh, core_.spec().meshes[mesh.value()].gang_of(report.process.rank.rank)}];
  CommitAnswer answer{.process = report.process, .number = asked.number};
  switch (decision.ruling) {
    case CommitRuling::kRefuse: refuse(host, std::move(answer), std::move(decision.why)); break;
    case CommitRuling::kWait:
      if (waits_on(report.process.rank, {host, report.process.generation, asked.number}, now)) return;
      refuse(host, std::move(answer), text("for ", to_text(kGangPatience), ' ', decision.why));
      break;
    case CommitRuling::kTaken:
      if (!handlers_.is_durable(recorded)) return;  // the core's own answer waits for that, too
      answer.committed = true;
      answer.gang = committed_step(core_.facts(), report.process.rank);
      handlers_.answer(host, answer);
      break;
    case CommitRuling::kTake:
      if (last.ticket != 0 && now < last.taken_at + kFloor) return;
      last.taken_at = now;
      last.ticket = handlers_.decide(CheckpointCommitted{.host = host, .process = report.process, .commit = asked});
      recorded = last.ticket;
      break;
  }
}

// Who is ahead by chance is not: what waits costs him time, and what is refused may be his end.
bool CommitDesk::waits_on(RankId rank, const Asked& asked, Instant now) {
  auto& [question, since] = waits_[rank];
  if (!(question == asked)) since = now;
  question = asked;
  return now < since + kGangPatience;
}

void CommitDesk::refuse(HostId host, CommitAnswer answer, std::string why) {
  count_refusal(answer.process.rank, {host, answer.process.generation, answer.number});
  answer.why = std::move(why);
  handlers_.answer(host, answer);
}

// Once, however often it is said: what ran elsewhere before may ask beside the one that runs now.
void CommitDesk::count_refusal(RankId rank, const Asked& asked) {
  std::vector<Asked>& known = told_no_[rank];
  if (std::find(known.begin(), known.end(), asked) != known.end()) return;
  ++refused_;
  std::erase_if(known, [&asked](const Asked& one) { return one.host == asked.host; });
  if (known.size() == kAskers) known.erase(known.begin());
  known.push_back(asked);
}

}  // namespace monarch
