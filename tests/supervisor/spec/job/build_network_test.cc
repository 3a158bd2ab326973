// Addresses and ports; the marks of what is not built are passed over here.

#include "supervisor/spec/job/build_network.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

SpecOutcome load_whole(std::string yaml) {
  return load_spec({.name = "spec.yaml", .text = std::move(yaml), .directory = "/"}, {.unbuilt = UnbuiltKeys::kTake});
}

SpecOutcome load(std::string_view top_lines) { return load_whole(around_top(top_lines)); }

JobSpec job(std::string_view top_lines) {
  SpecOutcome outcome = load(top_lines);
  EXPECT_TRUE(outcome.loaded) << render(outcome);
  return outcome.loaded ? std::move(outcome.loaded->spec) : JobSpec{};
}

TEST(Control, HasAnAddressThatHostsReach) {
  EXPECT_EQ(job("control: {address: 10.0.0.1, ports: 21000-21001}\n").control,
            (ControlSpec{.address = "10.0.0.1", .ports = PortSpan{21'000, 21'001}}));
  EXPECT_EQ(job("control: {address: auto, ports: auto}\n").control, ControlSpec{});
  EXPECT_EQ(ids_and_places(load("control: {address: head}\n")), std::vector<std::string>{"E0222 3:20"});
  EXPECT_EQ(ids_and_places(load("control: {address: 0.0.0.0}\n")), std::vector<std::string>{"E0222 3:20"});
  EXPECT_EQ(ids_and_places(load("control: {ports: 21000-21000}\n")), std::vector<std::string>{"E0206 3:18"});
  EXPECT_EQ(ids_and_places(load("launch: {ssh: {hosts: 'n[1-2]'}}\ncontrol: {address: 127.0.0.1}\n")),
            std::vector<std::string>{"E0314 4:20"});
  EXPECT_TRUE(load("control: {address: 127.0.0.1}\n").loaded) << "virtual hosts are reached there";
}

TEST(Control, IsReachedDirectlyOrThroughTheSession) {
  EXPECT_EQ(job("launch: {ssh: {hosts: 'n[1-2]'}}\ncontrol: {via: ssh}\n").control.via, ControlVia::kSsh);
  EXPECT_EQ(job("control: {via: direct}\n").control.via, ControlVia::kDirect);
  EXPECT_EQ(job("").control.via, ControlVia::kDirect);
}

TEST(Control, GoesThroughTheSessionBehindAJumpHostUnlessSomethingElseIsWritten) {
  const std::string jump = "launch: {ssh: {hosts: 'n[1-2]', jump: [gate]}}\n";
  EXPECT_EQ(job(jump).control.via, ControlVia::kSsh);
  EXPECT_EQ(job(jump + "control: {address: auto, ports: 21000-21001}\n").control.via, ControlVia::kSsh);
  EXPECT_EQ(job(jump + "control: {address: 10.0.0.1}\n").control.via, ControlVia::kDirect);
  EXPECT_EQ(job(jump + "control: {via: direct}\n").control.via, ControlVia::kDirect);
  EXPECT_EQ(job("launch: {ssh: {hosts: 'n[1-2]', jump: []}}\n").control.via, ControlVia::kDirect);
}

TEST(SupervisorOn, IsHereUnlessTheFirstHostIsWritten) {
  const std::string ssh = "launch: {ssh: {hosts: 'n[1-2]'}}\n";
  EXPECT_FALSE(job(ssh).supervised_away());
  EXPECT_FALSE(job(ssh + "supervisor: {on: here}\n").supervised_away());
  EXPECT_TRUE(job(ssh + "supervisor: {on: first}\n").supervised_away());
}

TEST(SupervisorOn, OfVirtualHostsIsThisMachineAndSaysSo) {
  const SpecOutcome outcome = load("supervisor: {on: first}\n");
  ASSERT_TRUE(outcome.loaded);
  EXPECT_FALSE(outcome.loaded->spec.supervised_away());
  const auto& notes = outcome.loaded->notes;
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.starts_with("supervisor.on: first is not used");
  }));
}

TEST(SupervisorOn, TellsThatColdHostsAreForTheStartAlone) {
  const auto noted = [](std::string_view lines) {
    const SpecOutcome outcome = load(lines);
    EXPECT_TRUE(outcome.loaded) << render(outcome);
    const auto& notes = outcome.loaded->notes;
    return std::any_of(notes.begin(), notes.end(),
                       [](const std::string& note) { return note.starts_with("supervisor.on: first: of the "); });
  };
  EXPECT_TRUE(noted("launch: {ssh: {hosts: 'n[1-9]'}}\nsupervisor: {on: first}\n"));
  EXPECT_FALSE(noted("launch: {ssh: {hosts: 'n[1-9]'}}\n"));
}

TEST(SupervisorOn, ExcludesTheWayThroughTheSession) {
  EXPECT_EQ(ids_and_places(load("launch: {ssh: {hosts: 'n[1-2]'}}\ncontrol: {via: ssh}\nsupervisor: {on: first}\n")),
            std::vector<std::string>{"E0320 4:16"});
}

TEST(Control, TellsOfAnAddressThatHasNoUse) {
  const auto noted = [](std::string_view top_lines) {
    const SpecOutcome outcome = load(top_lines);
    if (!outcome.loaded || outcome.loaded->notes.empty()) return false;
    return outcome.loaded->notes.front().starts_with("control.address: 10.0.0.1 is not used");
  };
  // Any spec can be tried on virtual hosts, so this is no error.
  EXPECT_TRUE(noted("control: {address: 10.0.0.1}\n"));
  EXPECT_FALSE(noted("launch: {ssh: {hosts: 'n[1-2]'}}\ncontrol: {address: 10.0.0.1}\n"));
  EXPECT_TRUE(noted("launch: {ssh: {hosts: 'n[1-2]'}}\ncontrol: {address: 10.0.0.1, via: ssh}\n"));
  const SpecOutcome local = load("control: {via: ssh}\n");
  ASSERT_TRUE(local.loaded);
  ASSERT_FALSE(local.loaded->notes.empty());
  EXPECT_TRUE(local.loaded->notes.front().starts_with("control.via: ssh is not used")) << local.loaded->notes.front();
}

TEST(Network, NamesAnInterface) {
  EXPECT_EQ(job("network: {interface: ib0, ports: 20000-20999}\n").network,
            (NetworkSpec{.interface = "ib0", .ports = PortSpan{20'000, 20'999}}));
  EXPECT_EQ(job("network: {interface: auto}\n").network, NetworkSpec{});
  EXPECT_EQ(ids_and_places(load("network: {interface: 10.0.0.0/8}\n")), std::vector<std::string>{"E0223 3:22"});
}

TEST(Network, HasPortsForTheRanksOfAMachine) {
  const auto with = [](std::string_view lines) {
    const std::string yaml =
        text("version: 1\njob: j\n", lines,
             "meshes:\n  a: {dims: {host: 2, gpu: 4}, gang: host, program: [x], ports: {http: auto}}\n"
             "  b: {dims: {slot: 1}, program: [x], hosts: {like: a}}\n");
    const SpecOutcome outcome = load_whole(yaml);
    return outcome.loaded ? std::string() : text(outcome.diagnostics[0].id, " ", outcome.diagnostics[0].help);
  };
  // Of the mesh a four ports and that of a gang on each host, of b one more on the first.
  EXPECT_EQ(with("network: {ports: 20000-20010}\n"), "");
  EXPECT_EQ(with("network: {ports: 20000-20009}\n"), "E0315 `20000-20010` would work");
  // With checkpoints one more on each host, and on a spare.
  const std::string kept = "checkpoints: {peer: 1, memory: 8GiB}\nlaunch: {local: {hosts: 3, spares: 1}}\n";
  EXPECT_EQ(with(kept + "network: {ports: 20000-20013}\n"), "");
  EXPECT_EQ(with(kept + "network: {ports: 20000-20012}\n"), "E0315 `20000-20013` would work");
  EXPECT_EQ(with("launch: {ssh: {hosts: 'n[1-2]'}}\nnetwork: {ports: 65530-65535}\n"), "");
  EXPECT_EQ(with("launch: {ssh: {hosts: 'n[1-2]'}}\nnetwork: {ports: 65531-65535}\n"),
            "E0315 `65530-65535` would work");
}

TEST(Network, DoesNotCountPortsThatAMeshFixes) {
  const auto with = [](std::string_view ports) {
    const std::string yaml = text("version: 1\njob: j\nnetwork: {ports: ", ports,
                                  "}\nmeshes:\n  a: {dims: {slot: 1}, program: [x], ports: {http: 20001}}\n");
    const SpecOutcome outcome = load_whole(yaml);
    return outcome.loaded ? std::string() : text(outcome.diagnostics[0].id, " ", outcome.diagnostics[0].help);
  };
  EXPECT_EQ(with("20001-20002"), "");
  EXPECT_EQ(with("20001-20001"), "E0315 `20001-20002` would work");
  EXPECT_EQ(with("20002-20002"), "");
}

TEST(Network, TellsOfAnInterfaceThatHasNoUse) {
  const SpecOutcome local = load("supervision: {restart: {max: 0}, reallocate: {max: 0}}\nnetwork: {interface: ib0}\n");
  ASSERT_TRUE(local.loaded);
  EXPECT_TRUE(local.loaded->notes.front().starts_with("network.interface: ib0 is not used"))
      << local.loaded->notes.front();
}

}  // namespace
}  // namespace monarch
