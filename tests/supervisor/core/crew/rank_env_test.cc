#include "supervisor/core/crew/rank_env.h"

#include <gtest/gtest.h>

#include "supervisor/launch/local/local_spec.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

JobSpec on_two_machines() {
  JobSpec spec = fixtures::job_of(2, 2);
  spec.launch = LaunchSsh{.hosts = {{.name = "gpu7", .address = "10.0.0.7"}, {.name = "gpu2"}, {.name = "gpu3"}}};
  return spec;
}

std::vector<EnvVariable> variables_of(const JobSpec& spec, RankId rank) {
  const Placement placement(spec);
  const std::vector<PoolHost> hosts = pool_of(spec);
  const RankEnvInput input{.spec = spec,
                           .placement = placement,
                           .hosts = hosts,
                           .job_id = "test-0001",
                           .generation = {Term(1), 3},
                           .restarts = 1,
                           .master_port = 29'500,
                           .error_file = "/logs/trainer/0.3.error.json"};
  return rank_environment(input, rank);
}

std::map<std::string, std::string> environment_of(const JobSpec& spec, RankId rank) {
  std::map<std::string, std::string> flat;
  for (const EnvVariable& variable : variables_of(spec, rank)) flat[variable.name] = variable.value;
  return flat;
}

TEST(RankEnvironment, IsTorchrunsForOneGang) {
  const auto env = environment_of(fixtures::job_of(2, 2), {MeshId(0), Rank(3)});
  EXPECT_EQ(env.at("RANK"), "3");
  EXPECT_EQ(env.at("LOCAL_RANK"), "1");
  EXPECT_EQ(env.at("WORLD_SIZE"), "4");
  EXPECT_EQ(env.at("LOCAL_WORLD_SIZE"), "2");
  EXPECT_EQ(env.at("GROUP_RANK"), "1");
  EXPECT_EQ(env.at("NODE_RANK"), "1");
  EXPECT_EQ(env.at("GROUP_WORLD_SIZE"), "2");
  EXPECT_EQ(env.at("MASTER_ADDR"), "127.0.1.1");
  EXPECT_EQ(env.at("MASTER_PORT"), "29500");
  EXPECT_EQ(env.at("TORCHELASTIC_RESTART_COUNT"), "1");
  EXPECT_EQ(env.at("TORCHELASTIC_RUN_ID"), "test-0001");
  EXPECT_EQ(env.at("MONARCH_RANK"), "3");
  EXPECT_EQ(env.at("MONARCH_RANK_HOST"), "1");
  EXPECT_EQ(env.at("MONARCH_RANK_GPU"), "1");
  EXPECT_EQ(env.at("MONARCH_SIZE_HOST"), "2");
  EXPECT_EQ(env.at("MONARCH_GENERATION"), "3");
  EXPECT_EQ(env.at("MONARCH_HOST"), "v2");
  EXPECT_EQ(env.at("GLOO_SOCKET_IFNAME"), "lo");
}

TEST(RankEnvironment, TellsEachRankWhatItsGangGoesOnFrom) {
  JobSpec spec = fixtures::job_of(2, 1);
  spec.meshes[0].gang.scope = GangScope::kEach;
  const Placement placement(spec);
  const std::vector<PoolHost> hosts = pool_of(spec);
  RankEnvInput input{.spec = spec,
                     .placement = placement,
                     .hosts = hosts,
                     .job_id = "test-0001",
                     .generation = {Term(1), 3},
                     .error_file = "/logs/error.json"};
  const auto committed = [&input] {
    std::vector<std::string> words;
    for (const EnvVariable& variable : rank_environment(input, {MeshId(0), Rank(1)})) {
      if (variable.name.starts_with("MONARCH_COMMITTED_")) words.push_back(variable.name + "=" + variable.value);
    }
    return words;
  };
  EXPECT_TRUE(committed().empty()) << "nothing yet";
  const GangCheckpoint checkpoint{.step = 40, .generation = {Term(1), 2}, .what = {"ckpt/40"}};
  input.checkpoint = &checkpoint;
  EXPECT_EQ(committed(), (std::vector<std::string>{"MONARCH_COMMITTED_GENERATION=2", "MONARCH_COMMITTED_STEP=40",
                                                   "MONARCH_COMMITTED_WHAT=ckpt/40"}));
}

TEST(RankEnvironment, HasWhatItsMeshTakesFromTheShell) {
  JobSpec spec = fixtures::job_of(1, 1);
  spec.meshes[0].env_pass = {"HF_TOKEN", "WANDB_*"};
  spec.meshes[0].env = {{"WANDB_MODE", "offline"}};
  const Placement placement(spec);
  const auto hosts = virtual_hosts(1);
  const RankEnvInput input{.spec = spec,
                           .placement = placement,
                           .hosts = hosts,
                           .generation = {Term(1), 1},
                           .shell = {{"HF_TOKEN", "a"}, {"WANDB_KEY", "b"}, {"WANDB_MODE", "online"}, {"OTHER", "c"}}};
  std::map<std::string, EnvVariable> found;
  for (EnvVariable& variable : rank_environment(input, {MeshId(0), Rank(0)})) found[variable.name] = variable;
  EXPECT_EQ(found.at("HF_TOKEN").value, "a");
  EXPECT_EQ(found.at("WANDB_KEY").value, "b");
  EXPECT_EQ(found.at("WANDB_KEY").origin, EnvOrigin::kPassed);
  EXPECT_TRUE(found.at("WANDB_KEY").secret);
  EXPECT_EQ(found.at("WANDB_MODE").value, "offline") << "what the spec says wins";
  EXPECT_FALSE(found.contains("OTHER"));
}

TEST(RankEnvironment, IsRelativeToTheGangWhereTheMeshHasSeveral) {
  JobSpec spec;
  spec.name = "test";
  spec.meshes.push_back(fixtures::mesh_of("trainer", {{"replica", 2}, {"host", 2}, {"gpu", 2}}, 1));
  spec.meshes[0].gang = {.scope = GangScope::kDimension, .along = 0};
  const auto env = environment_of(spec, {MeshId(0), Rank(7)});
  EXPECT_EQ(env.at("RANK"), "3");
  EXPECT_EQ(env.at("WORLD_SIZE"), "4");
  EXPECT_EQ(env.at("NODE_RANK"), "1");
  EXPECT_EQ(env.at("MASTER_ADDR"), "127.0.1.3");
  EXPECT_EQ(env.at("MONARCH_RANK"), "7");
  EXPECT_EQ(env.at("MONARCH_WORLD_SIZE"), "8");
  EXPECT_EQ(env.at("REPLICA_GROUP_ID"), "1");
  EXPECT_EQ(env.at("NUM_REPLICA_GROUPS"), "2");
}

TEST(RankEnvironment, LetsTheSpecWin) {
  JobSpec spec = fixtures::job_of(1, 1);
  spec.meshes[0].env = {{"GLOO_SOCKET_IFNAME", "eth0"}, {"MASTER_PORT", "1"}};
  const auto env = environment_of(spec, {MeshId(0), Rank(0)});
  EXPECT_EQ(env.at("GLOO_SOCKET_IFNAME"), "eth0");
  EXPECT_EQ(env.at("MASTER_PORT"), "1");
}

TEST(RankEnvironment, HasWhatPythonProgramsWantUnlessTheSpecSaysOtherwise) {
  JobSpec spec = fixtures::job_of(2, 2);
  EXPECT_EQ(environment_of(spec, {MeshId(0), Rank(0)}).at("PYTHONUNBUFFERED"), "1");
  EXPECT_EQ(environment_of(spec, {MeshId(0), Rank(0)}).at("OMP_NUM_THREADS"), "1");
  const JobSpec alone = fixtures::job_of(2, 1);
  EXPECT_FALSE(environment_of(alone, {MeshId(0), Rank(0)}).contains("OMP_NUM_THREADS")) << "it has its host for itself";
  spec.meshes[0].env = {{"PYTHONUNBUFFERED", ""}, {"OMP_NUM_THREADS", "8"}};
  const auto env = environment_of(spec, {MeshId(0), Rank(0)});
  EXPECT_EQ(env.at("PYTHONUNBUFFERED"), "");
  EXPECT_EQ(env.at("OMP_NUM_THREADS"), "8");
}

TEST(RankEnvironment, LeavesTheInterfaceToLibrariesUnlessTheSpecNamesIt) {
  JobSpec spec = on_two_machines();
  EXPECT_FALSE(environment_of(spec, {MeshId(0), Rank(0)}).contains("NCCL_SOCKET_IFNAME"));
  spec.network.interface = "ib0";
  EXPECT_EQ(environment_of(spec, {MeshId(0), Rank(0)}).at("NCCL_SOCKET_IFNAME"), "ib0");
  EXPECT_EQ(environment_of(spec, {MeshId(0), Rank(0)}).at("GLOO_SOCKET_IFNAME"), "ib0");
}

TEST(RankEnvironment, LeavesVirtualHostsOnTheirOwnInterface) {
  JobSpec spec = fixtures::job_of(1, 1);
  spec.network.interface = "ib0";
  EXPECT_EQ(environment_of(spec, {MeshId(0), Rank(0)}).at("GLOO_SOCKET_IFNAME"), "lo");
}

TEST(RankEnvironment, KnowsTheAddressOfARealHostOnlyAtTheStart) {
  const JobSpec spec = on_two_machines();
  for (const EnvVariable& variable : variables_of(spec, {MeshId(0), Rank(3)})) {
    EXPECT_EQ(variable.at_start, variable.name == "MASTER_ADDR") << variable.name;
    if (variable.name == "MONARCH_HOST") {
      EXPECT_EQ(variable.value, "gpu2");
    }
  }
}

TEST(Pool, HoldsTheHostsOfTheLauncherInOrder) {
  JobSpec spec = fixtures::job_of(2, 2);
  spec.launch = LaunchLocal{.spares = 1};
  EXPECT_EQ(spec.pool_size(), 3U);
  EXPECT_EQ(pool_of(spec).at(2).name, "v3");
  EXPECT_EQ(pool_of(spec).at(2).address, "127.0.1.3");
  const JobSpec ssh = on_two_machines();
  EXPECT_EQ(ssh.pool_size(), 3U);
  ASSERT_EQ(pool_of(ssh).size(), 3U);
  EXPECT_EQ(pool_of(ssh).at(0).name, "gpu7");
  EXPECT_EQ(pool_of(ssh).at(0).address, "") << "what SSH dials is not what ranks use";
}

TEST(Placement, GivesMeshesTheirHostsOneAfterTheOther) {
  JobSpec spec = fixtures::job_of(2, 2);
  spec.meshes.push_back(fixtures::mesh_of("generator", {{"host", 1}, {"gpu", 3}}, 1));
  const Placement placement(spec);
  EXPECT_EQ(placement.host_of({MeshId(0), Rank(3)}), HostId(1));
  EXPECT_EQ(placement.host_of({MeshId(1), Rank(0)}), HostId(2));
  EXPECT_TRUE(placement.holds_ranks(HostId(2)));
  EXPECT_FALSE(placement.holds_ranks(HostId(3)));
}

TEST(MeshSpec, CountsCoordinatesRowMajor) {
  const MeshSpec mesh = fixtures::mesh_of("m", {{"a", 2}, {"b", 3}, {"c", 4}}, 1);
  EXPECT_EQ(mesh.coordinates_of(Rank(23)), (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(mesh.coordinates_of(Rank(5)), (std::vector<std::uint32_t>{0, 1, 1}));
}

}  // namespace
}  // namespace monarch
