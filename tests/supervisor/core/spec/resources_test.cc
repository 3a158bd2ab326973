#include "supervisor/core/spec/resources.h"

#include <gtest/gtest.h>

#include "supervisor/core/crew/rank_env.h"
#include "supervisor/launch/slurm/slurm_spec.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

HostInventory machine(std::uint32_t cpus, std::uint32_t gpus) {
  HostInventory inventory{.cpus = cpus, .gpus = {}};
  for (std::uint32_t i = 0; i < gpus; ++i) inventory.gpus.push_back({.index = i, .uuid = "GPU-" + std::to_string(i)});
  return inventory;
}

// Two virtual hosts with two ranks of one GPU each, and a second mesh of one rank on the first of them.
JobSpec shared() {
  JobSpec spec = fixtures::job_of(2, 2);
  spec.meshes[0].resources = {.gpus = 1, .cpus = 2, .bind = BindKind::kCore};
  spec.meshes.push_back(fixtures::mesh_of("viewer", {{"host", 1}}, 0));
  spec.meshes[1].like = MeshId(0);
  spec.meshes[1].resources = {.gpus = 2, .cpus = 1};
  return spec;
}

std::string given(const JobSpec& spec, RankId rank, const HostInventory& inventory, std::string_view name) {
  const Placement placement(spec);
  const auto hosts = virtual_hosts(spec.pool_size());
  const Resources resources(spec, placement);
  for (const EnvVariable& variable : rank_environment({.spec = spec,
                                     .placement = placement,
                                     .hosts = hosts,
                                     .job_id = "t",
                                     .generation = {Term(1), 1},
                                     .resources = &resources,
                                     .inventory = &inventory},
                                                      rank)) {
    if (variable.name == name) return variable.value;
  }
  return "unset";
}

std::string visible(const JobSpec& spec, RankId rank, const HostInventory& inventory) {
  return given(spec, rank, inventory, "CUDA_VISIBLE_DEVICES");
}

TEST(Resources, StartAnewOnEachMachine) {
  JobSpec spec = shared();
  spec.launch = LaunchSsh{.hosts = {{.name = "a"}, {.name = "b"}}};
  spec.meshes[0].resources.bind = BindKind::kNuma;
  spec.meshes[0].resources.cpus.reset();
  const Placement placement(spec);
  const Resources resources(spec, placement);
  EXPECT_EQ(resources.gpus_of({MeshId(1), Rank(0)}).first, 2U) << "two meshes on one machine share it";
  EXPECT_EQ(resources.gpus_of({MeshId(0), Rank(2)}).first, 0U);
  EXPECT_EQ(resources.lacking({MeshId(0), Rank(2)}, machine(4, 2)), "");
  EXPECT_NE(resources.lacking({MeshId(1), Rank(0)}, machine(4, 2)), "");
  EXPECT_EQ(resources.binding_of({MeshId(0), Rank(3)}, machine(8, 2)).first_cpu, 4U) << "the second of two there";
  EXPECT_EQ(resources.binding_of({MeshId(0), Rank(1)}, machine(9, 4)).first_cpu, 3U) << "the second of three there";
}

TEST(Resources, OfANodeAreTheMostThatMeshesNeedThereTogether) {
  JobSpec spec = shared();
  spec.launch = LaunchSlurm{};
  EXPECT_EQ(gpus_per_node(spec), 4U) << "two ranks of one GPU, and a second mesh that needs two, on the first node";
  spec.meshes[1].like.reset();
  EXPECT_EQ(gpus_per_node(spec), 2U) << "on a node of its own";
  spec.meshes[0].resources.gpus = 3;
  EXPECT_EQ(gpus_per_node(spec), 6U);
  for (MeshSpec& mesh : spec.meshes) mesh.resources.gpus.reset();
  EXPECT_EQ(gpus_per_node(spec), 0U);
}

TEST(Resources, AreGivenOutOnceOverMeshesAndVirtualHosts) {
  const JobSpec spec = shared();
  const Placement placement(spec);
  const Resources resources(spec, placement);
  EXPECT_EQ(resources.gpus_of({MeshId(0), Rank(1)}).first, 1U);
  EXPECT_EQ(resources.gpus_of({MeshId(1), Rank(0)}).first, 2U);
  EXPECT_EQ(resources.gpus_of({MeshId(1), Rank(0)}).count, 2U);
  EXPECT_EQ(resources.gpus_of({MeshId(0), Rank(2)}).first, 4U);
  EXPECT_EQ(resources.gpus_of({MeshId(0), Rank(3)}).first, 5U);
  EXPECT_EQ(resources.cpus_of({MeshId(0), Rank(2)}).first, 5U);
  const RankBinding binding = resources.binding_of({MeshId(0), Rank(3)}, machine(9, 6));
  EXPECT_EQ(binding.first_cpu, 7U);
  EXPECT_EQ(binding.cpus, 2U);
  EXPECT_EQ(binding.gpus, std::vector<std::string>{"GPU-5"});
}

TEST(Resources, SayWhatAHostLacks) {
  const JobSpec spec = shared();
  const Placement placement(spec);
  const Resources resources(spec, placement);
  EXPECT_EQ(resources.lacking({MeshId(0), Rank(2)}, machine(9, 6)), "");
  EXPECT_EQ(resources.lacking({MeshId(0), Rank(0)}, machine(9, 1)), "needs 2 GPUs, and there are 1");
  EXPECT_EQ(resources.lacking({MeshId(0), Rank(2)}, machine(9, 5)),
            "needs 2 GPUs besides the 4 that other meshes and virtual hosts of its machine have, and there are 5");
  EXPECT_EQ(resources.lacking({MeshId(0), Rank(0)}, machine(3, 6)), "needs 4 cores, and there are 3");
}

TEST(Resources, ShowARankTheGpusOfItsGangOrItsOwn) {
  JobSpec spec = shared();
  const HostInventory has = machine(9, 6);
  EXPECT_EQ(visible(spec, {MeshId(0), Rank(0)}, has), "0,1");
  EXPECT_EQ(visible(spec, {MeshId(0), Rank(3)}, has), "4,5");
  EXPECT_EQ(visible(spec, {MeshId(1), Rank(0)}, has), "2,3");
  spec.meshes[0].resources.visible = GpuVisibility::kRank;
  EXPECT_EQ(visible(spec, {MeshId(0), Rank(3)}, has), "5");
  spec.meshes[0].resources.visible = GpuVisibility::kGang;
  spec.meshes[0].gang.scope = GangScope::kEach;
  EXPECT_EQ(visible(spec, {MeshId(0), Rank(3)}, has), "5");
  spec.meshes[0].env["CUDA_VISIBLE_DEVICES"] = "7";
  EXPECT_EQ(visible(spec, {MeshId(0), Rank(3)}, has), "7");
  EXPECT_EQ(given(spec, {MeshId(1), Rank(0)}, has, "CUDA_DEVICE_ORDER"), "PCI_BUS_ID") << "as the numbers are";
  spec.meshes[1].env["CUDA_DEVICE_ORDER"] = "FASTEST_FIRST";
  EXPECT_EQ(given(spec, {MeshId(1), Rank(0)}, has, "CUDA_DEVICE_ORDER"), "FASTEST_FIRST");
  spec.meshes[1].env.clear();
  spec.meshes[1].resources.gpus = 0;
  EXPECT_EQ(given(spec, {MeshId(1), Rank(0)}, has, "CUDA_DEVICE_ORDER"), "unset");
  EXPECT_EQ(visible(spec, {MeshId(1), Rank(0)}, has), "");
  spec.meshes[1].resources.gpus.reset();
  EXPECT_EQ(visible(spec, {MeshId(1), Rank(0)}, has), "unset");
}

TEST(Resources, SpreadRanksOverTheNodesWhereNoNumberOfCoresIsAskedFor) {
  JobSpec spec = fixtures::job_of(2, 2);
  spec.meshes[0].resources.bind = BindKind::kNuma;
  const Placement placement(spec);
  const Resources resources(spec, placement);
  EXPECT_EQ(resources.binding_of({MeshId(0), Rank(0)}, machine(8, 0)).first_cpu, 0U);
  EXPECT_EQ(resources.binding_of({MeshId(0), Rank(3)}, machine(8, 0)).first_cpu, 6U);
  EXPECT_EQ(resources.binding_of({MeshId(0), Rank(3)}, machine(8, 0)).cpus, 0U);
}

}  // namespace
}  // namespace monarch
