#include "supervisor/core/gangs/gangs.h"

#include "supervisor/core/facts/gangs.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

void Gangs::on(const RankHung& event) {
  const GangId g = basis_.mesh(event.process.rank.mesh).gang_of(event.process.rank.rank);
  GangState& state = gang(event.process.rank.mesh, g);
  if (basis_.crew_with(event.process.rank).generation != event.process.generation)
    return;  // it is told of one that has ended
  const bool alive = runs(state.phase);
  if (!alive) return;  // it is being stopped for another reason
  const MeshSpec& spec = basis_.mesh(event.process.rank.mesh);
  const bool restart = event.action == HangAction::kRestart && !basis_.state.foreseen;
  const char* what = restart ? "[hang.action: restart: its gang is stopped]"
                     : spec.supervision.hang.action == HangAction::kRestart
                         ? "[hang.action: restart; the limit is not written: reported only]"
                         : "[hang.action: report: nothing is stopped]";
  JobEvent hung = basis_.event(EventKind::kRankHung, restart ? Severity::kError : Severity::kWarning,
                               text(spec.name, "/", event.process.rank.rank.value(), " on ", basis_.name_of(event.host),
                                    ": ", printable(event.why), " ", what));
  hung.host = basis_.name_of(event.host);
  hung.mesh = spec.name;
  hung.rank = event.process.rank.rank.value();
  hung.generation = event.process.generation.counter;
  hung.pid = basis_.member(event.process.rank).pid;
  if (!event.phase.empty()) hung.details.emplace_back("phase", printable(event.phase));
  hung.details.emplace_back("waited", to_text(event.waited));
  hung.details.emplace_back("limit", to_text(event.limit));
  if (!event.stacks.empty()) hung.details.emplace_back("stacks", event.stacks);
  basis_.emit(std::move(hung));
  if (!restart) return;
  state.hung = event.process.rank;
  state.hung_because = printable(event.why);
  fail(event.process.rank.mesh, g, basis_.now - event.waited);
}

// What is stopped by a signal is so until its end: the next generation is another process.
void Gangs::on(const HoldAsked& event) {
  if (basis_.state.phase == JobPhase::kEnded) return;
  for (const RankId& id : event.ranks) {
    if (event.wish == HoldWish::kStop) rank(id).suspended = lives(basis_.member(id).stage);
    if (event.wish == HoldWish::kContinue) rank(id).suspended = false;
  }
}

void Gangs::on(const CheckpointCommitted& event) {
  const RankId id = event.process.rank;
  const GangId g = basis_.mesh(id.mesh).gang_of(id.rank);
  GangState& state = gang(id.mesh, g);
  MONARCH_ASSERT_BECAUSE(event.process.generation == basis_.crew_with(id).generation,
                         "I20: a commit is of its gang's present generation");
  const Committer who = committer(basis_, id);
  const bool taken = rule_commit(state.commits, who, event.commit).ruling == CommitRuling::kTake;
  const bool moved = taken && take_commit(state.commits, who, event.commit);
  basis_.actions.emplace_back(SendCommitAnswer{event.host,
                                               {.process = event.process,
                                                .number = event.commit.number,
                                                .committed = true,
                                                .why = {},
                                                .gang = committed_step(basis_, id)}});
  if (!moved) return;
  const MeshSpec& spec = basis_.mesh(id.mesh);
  JobEvent committed = basis_.event(EventKind::kCheckpointCommitted, Severity::kInfo,
                                    text(spec.name, ": gang ", g.value(), " has committed step ", event.commit.step,
                                         ", generation ", event.process.generation.counter));
  committed.mesh = spec.name;
  committed.generation = event.process.generation.counter;
  committed.details = {{"gang", text(g.value())}, {"step", text(event.commit.step)}};
  basis_.emit(std::move(committed));
}

// What of it fits was chosen before (inheritance.h). Said again by a supervisor that comes back before the job has
// begun, it begins anew.
void Gangs::on(const GangsInherited& event) {
  if (basis_.state.phase != JobPhase::kNew) return;
  for (const InheritedGang& from : event.gangs) {
    if (from.mesh.value() >= mine_.size()) continue;
    if (from.gang.value() >= mine_[from.mesh.value()].gangs.size()) continue;
    GangState& to = gang(from.mesh, from.gang);
    auto& newest = to.commits.newest;
    if (from.first > 0) {
      const bool more = newest && from.checkpoint && newest->what.size() == from.first;
      if (more) newest->what.insert(newest->what.end(), from.checkpoint->what.begin(), from.checkpoint->what.end());
      continue;
    }
    crews_.inherit({from.mesh, from.gang}, from.generation);
    to.furthest = from.furthest;
    newest = from.checkpoint;
  }
}

void Gangs::take_over(const JobBegun& event) {
  if (event.continues.empty()) return;
  // One that is not whole is none.
  basis_.each_gang([this](MeshId m, GangId g) {
    auto& newest = gang(m, g).commits.newest;
    if (newest && newest->what.size() != basis_.mesh(m).gang_size()) newest.reset();
  });
  basis_.emit(basis_.event(EventKind::kJobContinues, event.lost.empty() ? Severity::kInfo : Severity::kWarning,
                           text(basis_.options.job_id, " goes on from ", printable(event.continues),
                                event.lost.empty() ? "" : "; ", join(event.lost, "; "))));
}

}  // namespace monarch
