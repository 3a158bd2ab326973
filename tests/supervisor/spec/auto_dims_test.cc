#include "supervisor/spec/auto_dims.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

SpecOutcome with_gpus(std::uint32_t gpus, const std::string& yaml, const std::string& setting = "") {
  SpecParts parts;
  parts.files.push_back({.name = "spec.yaml", .text = yaml, .directory = "/home/u/job"});
  if (!setting.empty()) parts.settings.push_back({.text = "--set " + setting, .begin = 6});
  return load_spec(parts, {.count_gpus = [gpus] { return gpus; }});
}

std::string mesh(const std::string& dims) { return around_mesh(text("    dims: ", dims, "\n    program: [x]\n")); }

// "2×4", or what is wrong.
std::string shape(const SpecOutcome& outcome) {
  if (!outcome.loaded) return join(ids_and_places(outcome), " ");
  std::string out;
  for (const Dimension& dim : outcome.loaded->spec.meshes.at(0).dims) out += text(out.empty() ? "" : "×", dim.size);
  return out;
}

TEST(AutoDims, AreTheGpusOfThisMachineDividedByItsVirtualHosts) {
  EXPECT_EQ(shape(with_gpus(8, mesh("{gpu: auto}"))), "8");
  EXPECT_EQ(shape(with_gpus(8, mesh("{host: 2, gpu: auto}"))), "2×4");
  EXPECT_EQ(shape(with_gpus(8, mesh("{host: 3, gpu: auto}"))), "3×2");
  EXPECT_EQ(shape(with_gpus(8, mesh("{replica: 2, host: 2, gpu: auto, thread: 3}"))), "2×2×2×3");
  EXPECT_EQ(shape(with_gpus(8, mesh("{gpu: 3}"), "meshes.m.dims.gpu=auto")), "8");
}

TEST(AutoDims, OfSeveralMeshesShareTheMachine) {
  const std::string two = mesh("{gpu: auto}") + "  n:\n    dims: {gpu: auto}\n    program: [x]\n";
  EXPECT_EQ(shape(with_gpus(8, two)), "4");
  EXPECT_EQ(shape(with_gpus(8, two + "    hosts: {like: m}\n")), "8");
}

TEST(AutoDims, StandAsNumbersInTheJobsOwnCopyAndAreSaid) {
  const SpecOutcome outcome = with_gpus(8, mesh("{host: 2, gpu: auto}"));
  ASSERT_TRUE(outcome.loaded) << render(outcome);
  EXPECT_EQ(outcome.loaded->text.find("auto"), std::string::npos) << outcome.loaded->text;
  EXPECT_EQ(outcome.loaded->notes.front(), "meshes.m.dims.gpu: auto is 4 here: 8 GPUs for 2 virtual hosts");
  const SpecOutcome again = load_text(outcome.loaded->text);  // where nobody counts
  ASSERT_TRUE(again.loaded) << render(again);
  EXPECT_TRUE(again.loaded->spec == outcome.loaded->spec);
}

TEST(AutoDims, AreRefusedWhereTheyCountNothing) {
  EXPECT_EQ(shape(with_gpus(0, mesh("{gpu: auto}"))), "E0316 5:17");
  EXPECT_EQ(shape(with_gpus(1, mesh("{host: 2, gpu: auto}"))), "E0316 5:26");
  EXPECT_EQ(shape(with_gpus(8, mesh("{host: auto, gpu: 4}"))), "E0316 5:18");
  EXPECT_EQ(shape(with_gpus(8, mesh("{gpu: auto, slot: auto}"))), "E0316 5:29");
  EXPECT_EQ(shape(load_text(mesh("{gpu: auto}"))), "E0316 5:17");
  EXPECT_EQ(shape(with_gpus(8, "launch: {ssh: {hosts: a}}\n" + mesh("{gpu: auto}"))), "E0316 6:17");
}

TEST(AutoDims, HideNoOtherFault) {
  EXPECT_EQ(shape(with_gpus(8, mesh("{gpu: auto, slot: 0}"))), "E0206 5:29");
  EXPECT_EQ(shape(with_gpus(8, mesh("{gpu: auto}\n    per_host: [x]"))), "E0213 6:16");
}

}  // namespace
}  // namespace monarch
