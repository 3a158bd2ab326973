#include "supervisor/journal/core_records.h"

#include <gtest/gtest.h>

#include <string>

#include "transport/base/limits.h"

namespace monarch {
namespace {

TEST(CoreRecords, HoldTheLargestJobInASnapshotWhateverItsRanksCallTheirCheckpoints) {
  constexpr std::size_t kRanks = limits::kRanksPerJob;
  const std::string third(kCommitNamesBytes / kRanks / 3, 'x');
  GangState gang;
  gang.commits.newest =
      GangCheckpoint{.step = 1, .generation = {Term(1), 1}, .what = std::vector<std::string>(kRanks, third)};
  gang.commits.resumed = gang.commits.newest;
  std::vector<RankCommit> ahead(GangCommits::kAhead, {.step = 2, .what = {}});
  ahead.front().what = third;
  gang.commits.ahead.assign(kRanks, ahead);
  JobState state;
  state.hosts.resize(limits::kHostsPerJob);
  MeshState mesh;
  mesh.ranks.assign(kRanks, RankState{.ended_at = Instant::never()});
  mesh.gangs.push_back(std::move(gang));
  state.meshes.push_back(std::move(mesh));
  Crew crew{.generation = {Term(1), 1}};
  crew.hosts.resize(limits::kHostsPerJob);
  crew.ports.assign(limits::kHostsPerJob, HostPorts{.held = true, .ports = {29'500}});
  crew.members.assign(kRanks, CrewMember{.pid = 1});
  state.crews = {{crew}};
  EXPECT_LE(encode_job_state(state).size(), limits::kSnapshotBytes);
}

}  // namespace
}  // namespace monarch
