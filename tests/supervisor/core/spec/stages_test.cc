#include "supervisor/core/spec/stages.h"

#include <gtest/gtest.h>

#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

// Meshes 0, 1, 2 …, each with the numbers of those that it depends on.
JobSpec meshes(const std::vector<std::vector<std::uint32_t>>& depends_on) {
  JobSpec spec;
  for (std::size_t i = 0; i < depends_on.size(); ++i) {
    spec.meshes.push_back(fixtures::mesh_of("m" + std::to_string(i), {{"host", 1}}, 0));
    for (const std::uint32_t other : depends_on[i]) spec.meshes.back().depends_on.emplace_back(other);
  }
  return spec;
}

std::vector<std::uint32_t> stages_of(const JobSpec& spec) {
  const Stages stages(spec);
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < spec.meshes.size(); ++i) out.push_back(stages.stage_of(MeshId(i)));
  return out;
}

TEST(Stages, PutAMeshOneAboveTheHighestThatItWaitsFor) {
  EXPECT_EQ(stages_of(meshes({{}, {}})), (std::vector<std::uint32_t>{0, 0}));
  EXPECT_EQ(stages_of(meshes({{1, 2}, {2}, {}})), (std::vector<std::uint32_t>{2, 1, 0}));
  EXPECT_EQ(Stages(meshes({{1, 2}, {2}, {}})).count(), 3U);
}

TEST(Stages, LetWhateverIsNoSidecarWaitForEverySidecar) {
  JobSpec spec = meshes({{}, {}, {}});
  spec.meshes[1].sidecar = true;
  spec.meshes[2].sidecar = true;
  spec.meshes[2].depends_on = {MeshId(1)};
  const Stages stages(spec);
  EXPECT_EQ(stages.waits_for(MeshId(0)), (std::vector<MeshId>{MeshId(1), MeshId(2)}));
  EXPECT_TRUE(stages.waits_for(MeshId(1)).empty());
  EXPECT_EQ(stages.stage_of(MeshId(0)), 2U);
}

TEST(Stages, KnowWhatStartsAfterWhat) {
  const Stages stages(meshes({{1}, {2}, {}, {}}));
  EXPECT_TRUE(stages.starts_after(MeshId(0), MeshId(2)));
  EXPECT_FALSE(stages.starts_after(MeshId(2), MeshId(0)));
  EXPECT_FALSE(stages.starts_after(MeshId(0), MeshId(3)));
  EXPECT_FALSE(stages.starts_after(MeshId(0), MeshId(0)));
}

TEST(Stages, FindARingAndLeaveOutWhatOnlyLeadsToIt) {
  EXPECT_FALSE(ring_of_dependencies(meshes({{1, 2}, {2}, {}})));
  EXPECT_EQ(ring_of_dependencies(meshes({{1}, {2}, {3}, {1}})), (std::vector<MeshId>{MeshId(1), MeshId(2), MeshId(3)}));
  EXPECT_EQ(ring_of_dependencies(meshes({{0}})), (std::vector<MeshId>{MeshId(0)}));
}

}  // namespace
}  // namespace monarch
