#include "supervisor/core/job/roster.h"

namespace monarch {

namespace {

// As its callers see it: one whose gang is being stopped is not called any more.
RosterState standing_of(const MeshSpec& mesh, const GangState& gang, const RankState& rank, RankStage stage) {
  switch (gang.phase) {
    case GangPhase::kDone:
    case GangPhase::kStopped: return RosterState::kEnded;
    case GangPhase::kFailed: return RosterState::kGivenUp;
    case GangPhase::kIdle: return RosterState::kIdle;
    case GangPhase::kParked: {
      const auto& shrink = mesh.supervision.shrink;
      return shrink && shrink->regrow ? RosterState::kDown : RosterState::kGivenUp;
    }
    case GangPhase::kWaiting:
    case GangPhase::kReserving:
    case GangPhase::kFailing:
    case GangPhase::kStopping: break;
    case GangPhase::kStarting:
    case GangPhase::kRunning:
      if (stage == RankStage::kEnded) return RosterState::kEnded;  // and its gang did not fail with that
      if (stage == RankStage::kRunning && rank.ready && !rank.reaped) return RosterState::kUp;
      break;
  }
  return gang.ever_ready || gang.restarts > 0 ? RosterState::kDown : RosterState::kStarting;
}

bool continues(const RosterRun& run, const RosterRun& next) {
  return run.mesh == next.mesh && run.host == next.host && run.generation == next.generation &&
         run.state == next.state && run.first.value() + run.count == next.first.value();
}

void add_ranks(const RosterSource& source, MeshId id, std::vector<RosterRun>& runs) {
  const MeshSpec& mesh = source.spec.meshes[id.value()];
  const MeshState& state = source.state.meshes[id.value()];
  for (std::uint32_t rank = 0; rank < state.ranks.size(); ++rank) {
    const GangId g = mesh.gang_of(Rank(rank));
    const GangState& gang = state.gangs[g.value()];
    const Crew& crew = crew_in(source.state, id, g);
    RosterRun next{.mesh = id,
                   .first = Rank(rank),
                   .count = 1,
                   .host = source.placement.host_of({id, Rank(rank)}),
                   .generation = crew.generation,
                   .state = standing_of(mesh, gang, state.ranks[rank], crew.members[rank % mesh.gang_size()].stage)};
    if (!runs.empty() && continues(runs.back(), next)) {
      ++runs.back().count;
    } else {
      runs.push_back(next);
    }
  }
}

}  // namespace

Roster make_roster(const RosterSource& source) {
  Roster roster;
  roster.term = source.state.term;
  for (std::uint32_t i = 0; i < source.state.hosts.size(); ++i) {
    const HostState& host = source.state.hosts[i];
    const bool connected = is_joined(host.phase) && !host.failing && !host.shutdown_told;
    if (!connected || host.public_key.empty() || source.pool[i].address.empty()) continue;
    roster.hosts.push_back({.peer = {.host = HostId(i),
                                     .name = source.pool[i].name,
                                     .address = source.pool[i].address,
                                     .port = source.posts[i].port,
                                     .public_key = host.public_key},
                            .without_post = source.posts[i].without});
  }
  for (std::uint32_t m = 0; m < source.spec.meshes.size(); ++m) {
    RosterMesh mesh{.name = source.spec.meshes[m].name, .dims = {}, .gang = source.spec.meshes[m].gang_size()};
    for (const auto& dim : source.spec.meshes[m].dims) mesh.dims.push_back({.name = dim.name, .size = dim.size});
    roster.meshes.push_back(std::move(mesh));
    add_ranks(source, MeshId(m), roster.runs);
  }
  roster.failures = source.failures;
  return roster;
}

}  // namespace monarch
