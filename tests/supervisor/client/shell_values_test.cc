#include "supervisor/client/shell_values.h"

#include <gtest/gtest.h>

#include <array>

namespace monarch {
namespace {

JobSpec job() {
  JobSpec spec;
  MeshSpec mesh;
  mesh.name = "m";
  mesh.program = {"echo", "$(env.NAMED)"};
  mesh.env_pass = {"TOKEN", "WANDB_*"};
  spec.meshes.push_back(mesh);
  return spec;
}

TEST(ShellValues, TakeWhatIsNamedOrPassedAndNothingElse) {
  const std::array<const char*, 6> environment = {"NAMED=a=b", "TOKEN=",      "WANDB_KEY=k",
                                                  "OTHER=x",   "no variable", nullptr};
  const auto values = shell_values(job(), environment.data());
  ASSERT_TRUE(values.ok()) << values.error().message;
  EXPECT_EQ(*values, (std::map<std::string, std::string>{{"NAMED", "a=b"}, {"TOKEN", ""}, {"WANDB_KEY", "k"}}));
}

TEST(ShellValues, OfAnotherMachineAreThoseWithThePrefix) {
  const std::array<const char*, 5> environment = {"NAMED=there", "MONARCH_SHELL_NAMED=here", "TOKEN=there",
                                                  "MONARCH_SHELL_OTHER=x", nullptr};
  const auto values = shell_values(job(), environment.data(), kShellPrefix);
  ASSERT_TRUE(values.ok()) << values.error().message;
  EXPECT_EQ(*values, (std::map<std::string, std::string>{{"NAMED", "here"}}));
}

TEST(ShellValues, NameWhatIsMissing) {
  const std::array<const char*, 2> environment = {"TOKEN=t", nullptr};
  const auto values = shell_values(job(), environment.data());
  ASSERT_FALSE(values.ok());
  EXPECT_NE(values.error().message.find("$(env.NAMED)"), std::string::npos);
}

}  // namespace
}  // namespace monarch
