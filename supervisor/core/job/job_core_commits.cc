// Checkpoints that ranks commit: which count, and from which a gang goes on (I20).

#include "supervisor/core/job/job_core.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

void JobCore::on(const CheckpointCommitted& event) {
  const RankId id = event.process.rank;
  const GangId g = mesh_spec(id.mesh).gang_of(id.rank);
  GangState& state = gang(id.mesh, g);
  MONARCH_ASSERT_BECAUSE(event.process.generation == basis_.crew_with(id).generation,
                         "I20: a commit is of its gang's present generation");
  const Committer who = committer(basis_, id);
  const bool taken = rule_commit(state.commits, who, event.commit).ruling == CommitRuling::kTake;
  const bool moved = taken && take_commit(state.commits, who, event.commit);
  actions_.emplace_back(SendCommitAnswer{event.host,
                                         {.process = event.process,
                                          .number = event.commit.number,
                                          .committed = true,
                                          .why = {},
                                          .gang = committed_step(basis_, id)}});
  if (!moved) return;
  const MeshSpec& spec = mesh_spec(id.mesh);
  JobEvent committed = event_of(EventKind::kCheckpointCommitted, Severity::kInfo,
                                text(spec.name, ": gang ", g.value(), " has committed step ", event.commit.step,
                                     ", generation ", event.process.generation.counter));
  committed.mesh = spec.name;
  committed.generation = event.process.generation.counter;
  committed.details = {{"gang", text(g.value())}, {"step", text(event.commit.step)}};
  emit(std::move(committed));
}

}  // namespace monarch
