#include "supervisor/spec/program_spec.h"

#include <gtest/gtest.h>

#include "supervisor/launch/ssh/ssh_spec.h"
#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

ProgramLine line(const std::string& size, const std::string& hosts, bool launched = false) {
  ProgramLine out{.program = {"python3", "train.py", "a b"},
                  .size = std::nullopt,
                  .hosts = std::nullopt,
                  .launch = std::nullopt,
                  .own_name = "mine",
                  .directory = "/home/u"};
  if (launched) out.launch = FlagText{.text = "--launch local", .begin = 9};
  if (!size.empty()) out.size = FlagText{.text = "-n " + size, .begin = 3};
  if (!hosts.empty()) out.hosts = FlagText{.text = "-H " + hosts, .begin = 3};
  return out;
}

// "host=2 slot=4", or the faults.
std::string shape(const ProgramLine& wanted) {
  const auto made = spec_of_program(wanted);
  if (const auto* outcome = std::get_if<SpecOutcome>(&made)) return join(ids_and_places(*outcome), " ");
  const SpecOutcome loaded = load_spec(std::get<SpecSource>(made));
  EXPECT_TRUE(loaded.loaded) << render(loaded) << std::get<SpecSource>(made).text;
  if (!loaded.loaded) return "";
  const MeshSpec& mesh = loaded.loaded->spec.meshes.at(0);
  EXPECT_EQ(mesh.program, wanted.program);
  EXPECT_EQ(mesh.name, "main");
  EXPECT_EQ(loaded.loaded->spec.directory, "/home/u");
  std::vector<std::string> dims;
  for (const Dimension& dim : mesh.dims) dims.push_back(text(dim.name, "=", dim.size));
  return join(dims, " ");
}

TEST(ProgramSpec, SpreadsRanksOverHosts) {
  EXPECT_EQ(shape(line("4", "")), "slot=4");
  EXPECT_EQ(shape(line("8", "a,b", true)), "host=2 slot=4");
  EXPECT_EQ(shape(line("", "node[01-04]", true)), "host=4 slot=1");
  EXPECT_EQ(shape(line("", "a:4,b:4", true)), "host=2 slot=4");
  EXPECT_EQ(shape(line("8", "node[1-2]:4", true)), "host=2 slot=4");
  EXPECT_EQ(shape(line("", "localhost:4")), "slot=4");
  EXPECT_EQ(shape(line("3", "mine")), "slot=3");
}

TEST(ProgramSpec, SpreadsRanksOverTheHostsOfLaunch) {
  const auto launched = [](const std::string& size, const std::string& where) {
    ProgramLine wanted = line(size, "");
    wanted.launch = FlagText{.text = "--launch " + where, .begin = 9};
    return shape(wanted);
  };
  EXPECT_EQ(launched("8", "local:2"), "host=2 slot=4");
  EXPECT_EQ(launched("8", "ssh:node[01-04]"), "host=4 slot=2");
  EXPECT_EQ(launched("8", "slurm:4"), "host=4 slot=2");
  EXPECT_EQ(launched("8", "local"), "slot=8");
  EXPECT_EQ(launched("8", "local:1"), "slot=8");
  EXPECT_EQ(launched("2", "local:3"), "host=2 slot=1") << "the third stays free";
  EXPECT_EQ(launched("1", "local:3"), "slot=1");
  EXPECT_EQ(launched("4", "local:3"), "E0308 1:4");
  for (const char* wrong : {"local:", "local:x", "local:2x", "ssh:", "ssh:-x", "slurm:", "slurm:x", "slurm"}) {
    EXPECT_EQ(launched("8", wrong), "slot=8") << wrong;
  }
}

TEST(ProgramSpec, RefusesWhatDoesNotSpread) {
  EXPECT_EQ(shape(line("7", "a,b", true)), "E0308 1:4");
  EXPECT_EQ(shape(line("1", "a,b", true)), "E0308 1:4");
  EXPECT_EQ(shape(line("6", "a:4,b:4", true)), "E0308 1:4");
  EXPECT_EQ(shape(line("", "a:4,b", true)), "E0308 1:4");
  EXPECT_EQ(shape(line("0", "")), "E0201 1:4");
  EXPECT_EQ(shape(line("08", "")), "E0201 1:4");
  EXPECT_EQ(shape(line("four", "")), "E0201 1:4");
  EXPECT_EQ(shape(line("65537", "")), "E0201 1:4");
  EXPECT_EQ(shape(line("-1", "")), "E0201 1:4");
  EXPECT_EQ(shape(line("", "a,,b", true)), "E0208 1:4");
  EXPECT_EQ(shape(line("", "-oProxyCommand=x", true)), "E0208 1:4");
  EXPECT_EQ(shape(line("", "n[1-5000]", true)), "E0307 1:4");
}

TEST(ProgramSpec, SaysWhereAnAddressOfIpv6IsWritten) {
  for (const char* hosts : {"fd00::1", "[fd00::1]:4", "a,fd00::1", "a,[fd00::1]"}) {
    const auto made = spec_of_program(line("", hosts, true));
    const auto* outcome = std::get_if<SpecOutcome>(&made);
    ASSERT_NE(outcome, nullptr) << hosts;
    EXPECT_NE(render(*outcome).find("{name: gpu1, address: \"fd00::1\"}"), std::string::npos) << render(*outcome);
  }
  for (const char* hosts : {"a,,b", "n[1-", "a:x"}) {
    const auto made = spec_of_program(line("", hosts, true));
    const auto* outcome = std::get_if<SpecOutcome>(&made);
    ASSERT_NE(outcome, nullptr) << hosts;
    EXPECT_NE(render(*outcome).find("write `-H a,b`"), std::string::npos) << render(*outcome);
  }
}

TEST(ProgramSpec, SaysWhereTheUserOfHostsIsWritten) {
  const auto refused = spec_of_program(line("", "root@a,b", true));
  ASSERT_TRUE(std::holds_alternative<SpecOutcome>(refused));
  EXPECT_NE(render(std::get<SpecOutcome>(refused)).find("--set launch.ssh.user="), std::string::npos)
      << render(std::get<SpecOutcome>(refused));
}

TEST(ProgramSpec, ReachesOtherMachinesBySsh) {
  ProgramLine wanted = line("8", "node[01-02],a");
  wanted.size = FlagText{.text = "-n 6", .begin = 3};
  const auto made = spec_of_program(wanted);
  ASSERT_TRUE(std::holds_alternative<SpecSource>(made));
  const SpecOutcome loaded = load_spec(std::get<SpecSource>(made));
  ASSERT_TRUE(loaded.loaded) << render(loaded) << std::get<SpecSource>(made).text;
  const auto* launch = loaded.loaded->spec.launch.as<LaunchSsh>();
  ASSERT_NE(launch, nullptr);
  EXPECT_EQ(launch->hosts.at(2).name, "a");
  EXPECT_EQ(loaded.loaded->spec.meshes.at(0).per_host(), 2U);
  wanted.hosts = FlagText{.text = "-H localhost", .begin = 3};
  const auto here = spec_of_program(wanted);
  EXPECT_NE(std::get<SpecSource>(here).text.find("local:"), std::string::npos) << "this machine needs no SSH";
}

TEST(ProgramSpec, TakesAnyProgram) {
  ProgramLine odd = line("1", "");
  odd.program = {"/bin/sh", "-c", "echo \"$X\"\nexit 3\n", "null", "010", "", " x"};
  EXPECT_EQ(shape(odd), "slot=1");
  odd.program = {""};
  EXPECT_EQ(shape(odd), "E0210 1:4");
  odd.program = {"a\xff"};
  EXPECT_EQ(shape(odd), "slot=1") << "a name is bytes";
}

TEST(ProgramSpec, NamesTheJobAfterWhatRuns) {
  EXPECT_EQ(job_name_of({"./train"}), "train");
  EXPECT_EQ(job_name_of({"/usr/bin/python3.11", "/srv/Train-GPT.v2.py", "x"}), "train_gpt");
  EXPECT_EQ(job_name_of({"python3", "-m", "torch"}), "python3");
  EXPECT_EQ(job_name_of({"bash"}), "bash");
  EXPECT_EQ(job_name_of({"7"}), "n7");
  EXPECT_EQ(job_name_of({"last"}), "job");
  EXPECT_EQ(job_name_of({"/"}), "job");
}

}  // namespace
}  // namespace monarch
