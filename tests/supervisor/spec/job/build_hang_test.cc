#include "supervisor/spec/job/build_hang.h"

#include <gtest/gtest.h>

#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

HangPolicy policy_of(const std::string& supervision, const std::string& of_mesh = {}) {
  const std::string mesh = text("    dims: {x: 1}\n    program: [x]\n", of_mesh);
  const std::string yaml = text(around_mesh(mesh), supervision);
  const SpecOutcome outcome = load_text(yaml);
  EXPECT_TRUE(outcome.loaded) << render(outcome.diagnostics, yaml);
  return outcome.loaded ? outcome.loaded->spec.meshes[0].supervision.hang : HangPolicy{};
}

TEST(Hang, ReportsByDefaultAndLimitsNoStepInFigures) {
  const HangPolicy policy = policy_of("");
  EXPECT_EQ(policy, HangPolicy{});
  EXPECT_EQ(policy.action, HangAction::kReport);
  EXPECT_EQ(policy.phases.at("init").longest, Duration::seconds(600));
  EXPECT_FALSE(policy.phases.at("init").written);
  EXPECT_FALSE(policy.phases.at("step").longest.has_value());
}

TEST(Hang, TakesWrittenTimesForAReasonToRestart) {
  const HangPolicy policy =
      policy_of("supervision: {hang: {action: restart, phases: {step: 30s, init: auto, warmup: 2h}}}\n");
  EXPECT_EQ(policy.action, HangAction::kRestart);
  EXPECT_EQ(policy.phases.at("step").longest, Duration::seconds(30));
  EXPECT_TRUE(policy.phases.at("step").written);
  EXPECT_EQ(policy.phases.at("warmup").longest, Duration::seconds(7'200));
  EXPECT_TRUE(policy.phases.at("warmup").written);
  EXPECT_EQ(policy.phases.at("init"), PhaseLimit{});
  EXPECT_FALSE(policy.phases.at("checkpoint").written);
}

TEST(Hang, LetsAMeshChangeWhatItWrites) {
  const HangPolicy policy = policy_of("supervision: {hang: {action: restart, phases: {step: 30s}}}\n",
                                      "    supervision: {hang: {phases: {checkpoint: 1h}}}\n");
  EXPECT_EQ(policy.action, HangAction::kRestart);
  EXPECT_TRUE(policy.phases.at("step").written);
  EXPECT_EQ(policy.phases.at("checkpoint").longest, Duration::seconds(3'600));
}

}  // namespace
}  // namespace monarch
