#include "supervisor/spec/job/build_input.h"

#include <gtest/gtest.h>

#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

constexpr char kOne[] = "  m: {dims: {r: 2}, program: [a]}\n";
constexpr char kTwo[] = "  m: {dims: {r: 2}, program: [a]}\n  n: {dims: {r: 3}, program: [b]}\n";

std::string spec_of(const std::string& input, const char* meshes) {
  return text("version: 1\njob: a\nstdin: ", input, "\nmeshes:\n", meshes);
}

std::optional<InputSpec> input_of(const std::string& input, const char* meshes) {
  const std::string yaml = spec_of(input, meshes);
  const SpecOutcome outcome = load_text(yaml);
  EXPECT_TRUE(outcome.loaded) << render(outcome.diagnostics, yaml);
  return outcome.loaded ? outcome.loaded->spec.input : std::nullopt;
}

std::string refusal(const std::string& input, const char* meshes) {
  const std::string yaml = spec_of(input, meshes);
  const SpecOutcome outcome = load_text(yaml);
  return outcome.loaded ? "none" : render(outcome.diagnostics, yaml);
}

TEST(BuildInput, NamesARankOrAll) {
  EXPECT_EQ(input_of("none", kTwo), std::nullopt);
  EXPECT_EQ(input_of("0", kOne), (InputSpec{.mesh = MeshId(0), .rank = Rank(0)}));
  EXPECT_EQ(input_of("\"1\"", kOne), (InputSpec{.mesh = MeshId(0), .rank = Rank(1)}));
  EXPECT_EQ(input_of("all", kOne), (InputSpec{.mesh = MeshId(0), .rank = {}}));
  EXPECT_EQ(input_of("n/2", kTwo), (InputSpec{.mesh = MeshId(1), .rank = Rank(2)}));
  EXPECT_EQ(input_of("n/all", kTwo), (InputSpec{.mesh = MeshId(1), .rank = {}}));
}

TEST(BuildInput, RefusesWhatIsNone) {
  EXPECT_NE(refusal("0", kTwo).find("does not say of which mesh"), std::string::npos);
  EXPECT_NE(refusal("o/0", kTwo).find("no mesh is called `o`"), std::string::npos);
  EXPECT_NE(refusal("2", kOne).find("has 2 ranks, and no rank 2"), std::string::npos);
  EXPECT_NE(refusal("yes please", kOne).find("is no rank"), std::string::npos);
  EXPECT_NE(refusal("-1", kOne).find("is no rank"), std::string::npos);
}

}  // namespace
}  // namespace monarch
