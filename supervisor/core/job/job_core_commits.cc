// Checkpoints that ranks commit: which count, and from which a gang goes on (I20).

#include "supervisor/core/job/job_core.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::size_t ranks_of(const JobSpec& spec) {
  std::size_t ranks = 0;
  for (const MeshSpec& mesh : spec.meshes) ranks += mesh.size();
  return ranks;
}

}  // namespace

bool JobCore::has_rank(RankId id) const {
  return id.mesh.value() < spec_.meshes.size() && id.rank.value() < spec_.meshes[id.mesh.value()].size();
}

Committer JobCore::committer(RankId id) const {
  const GangId g = mesh_spec(id.mesh).gang_of(id.rank);
  const RankRange range = placement_.range_of(id.mesh, g);
  return {.generation = crew(id.mesh, g).generation,
          .rank = id.rank.value() - range.first,
          .ranks = range.count,
          .names = kCommitNamesBytes / ranks_of(spec_)};
}

std::optional<std::uint64_t> JobCore::committed_step(RankId id) const {
  const GangState& state = gang(id.mesh, mesh_spec(id.mesh).gang_of(id.rank));
  if (!state.commits.newest) return std::nullopt;
  return state.commits.newest->step;
}

CommitDecision JobCore::rule_on(HostId where, const Incarnation& process, const CommitRequest& asked) const {
  const auto& [id, generation] = process;
  MONARCH_ASSERT(has_rank(id));
  const GangState& state = gang(id.mesh, mesh_spec(id.mesh).gang_of(id.rank));
  const Generation now = crew_with(id).generation;
  if (generation != now) {
    return refused_commit(text("generation ", generation.counter, " of this gang is over, ", now.counter,
                               " has its place: what it writes does not count"));
  }
  if (!judge(where, {.process = process}).granted) {
    return refused_commit("the supervisor has given this rank up: what it writes does not count");
  }
  return rule_commit(state.commits, committer(id), asked);
}

void JobCore::on(const CheckpointCommitted& event) {
  const RankId id = event.process.rank;
  const GangId g = mesh_spec(id.mesh).gang_of(id.rank);
  GangState& state = gang(id.mesh, g);
  MONARCH_ASSERT_BECAUSE(event.process.generation == crew_with(id).generation,
                         "I20: a commit is of its gang's present generation");
  const Committer who = committer(id);
  const bool taken = rule_commit(state.commits, who, event.commit).ruling == CommitRuling::kTake;
  const bool moved = taken && take_commit(state.commits, who, event.commit);
  actions_.emplace_back(SendCommitAnswer{event.host,
                                         {.process = event.process,
                                          .number = event.commit.number,
                                          .committed = true,
                                          .why = {},
                                          .gang = committed_step(id)}});
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
