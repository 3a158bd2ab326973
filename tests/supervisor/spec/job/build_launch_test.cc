// Launchers; the mark of SSH is passed over here.

#include "supervisor/spec/job/build_launch.h"

#include <gtest/gtest.h>

#include "supervisor/core/spec/placement.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "supervisor/spec/effective.h"
#include "supervisor/spec/relocate.h"
#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

constexpr std::string_view kKey = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU";

SpecSurroundings around(std::string hosts = "") {
  const auto read = [hosts = std::move(hosts)](const std::string& path) -> Result<std::string> {
    if (path == "/home/u/job/hosts.txt" || path == "/home/u/hosts.txt") return hosts;
    return Error{ErrorCode::kNotFound, text("cannot read the file of hosts ", path)};
  };
  return {.home = "/home/u", .read_hosts = read, .unbuilt = UnbuiltKeys::kTake};
}

SpecOutcome load(std::string_view top_lines, const std::string& hosts = "") {
  return load_spec({.name = "specs/spec.yaml", .text = around_top(top_lines), .directory = "/home/u/job"},
                   around(hosts));
}

JobSpec job(std::string_view top_lines, const std::string& hosts = "") {
  SpecOutcome outcome = load(top_lines, hosts);
  EXPECT_TRUE(outcome.loaded) << render(outcome);
  return outcome.loaded ? std::move(outcome.loaded->spec) : JobSpec{};
}

LaunchSsh ssh(std::string_view launch_ssh, const std::string& hosts = "") {
  const JobSpec built = job(text("launch: {ssh: ", launch_ssh, "}\n"), hosts);
  const auto* launch = built.launch.as<LaunchSsh>();
  EXPECT_NE(launch, nullptr);
  return launch == nullptr ? LaunchSsh{} : *launch;
}

std::vector<std::string> faults(std::string_view launch_ssh, const std::string& hosts = "") {
  return ids_and_places(load(text("launch: {ssh: ", launch_ssh, "}\n"), hosts));
}

TEST(LaunchSsh, HasTheDefaultsOfTheReference) {
  const LaunchSsh launch = ssh("{hosts: 'n[1-2]'}");
  const LaunchSsh wanted{.hosts = {{.name = "n1", .address = "n1"}, {.name = "n2", .address = "n2"}},
                         .identity = "/home/u/.ssh/id_ed25519",
                         .known_hosts = "/home/u/.ssh/known_hosts"};
  EXPECT_EQ(launch, wanted);
  EXPECT_EQ(launch.parallel, 64U);
  EXPECT_EQ(launch.connect_timeout, Duration::seconds(10));
}

TEST(LaunchSsh, GivesEachHostWhatIsSaidForAll) {
  const LaunchSsh launch =
      ssh(text("{user: alice, port: 2222, hosts: ['n[1-2]', {name: g, address: 10.0.0.7, user: bob, port: 22, ",
               "host_key: '", kKey, "'}]}"));
  ASSERT_EQ(launch.hosts.size(), 3U);
  EXPECT_EQ(launch.hosts[1], (SshHost{.name = "n2", .address = "n2", .user = "alice", .port = 2222}));
  const SshHost own{.name = "g", .address = "10.0.0.7", .user = "bob", .port = 22, .host_key = std::string(kKey)};
  EXPECT_EQ(launch.hosts[2], own);
}

TEST(LaunchSsh, TakesEveryKey) {
  const LaunchSsh launch = ssh(
      "{hosts: [a, b, c, d], spares: {count: 2}, identity: keys/id, known_hosts: /etc/known, config: ~/.ssh/config, "
      "jump: [bob@login1, 'login2:2222'], connect_timeout: 3s, parallel: 8, worker: /opt/monarch-worker}");
  EXPECT_EQ(launch.spares, 2U);
  EXPECT_EQ(launch.identity, "/home/u/job/keys/id");
  EXPECT_EQ(launch.known_hosts, "/etc/known");
  EXPECT_EQ(launch.config, "/home/u/.ssh/config");
  EXPECT_EQ(launch.jump,
            (std::vector<SshJump>{{.address = "login1", .user = "bob"}, {.address = "login2", .port = 2222}}));
  EXPECT_EQ(launch.connect_timeout, Duration::seconds(3));
  EXPECT_EQ(launch.parallel, 8U);
  EXPECT_EQ(launch.worker, "/opt/monarch-worker");
  EXPECT_EQ(ssh("{hosts: 'n[1-2]', config: none, worker: auto}").config, std::nullopt);
}

TEST(LaunchSsh, IsThePoolOfTheJob) {
  const JobSpec built = job("launch: {ssh: {hosts: 'n[1-4]', spares: 1}}\n");
  EXPECT_EQ(built.pool_size(), 4U);
  EXPECT_EQ(built.spares(), 1U);
  EXPECT_EQ(pool_of(built).at(3).name, "n4");
}

TEST(Spares, ArePreparedByAProgram) {
  for (const char* launcher : {"launch: {local: {spares: ", "launch: {ssh: {hosts: 'n[1-4]', spares: "}) {
    const JobSpec built = job(text(launcher, "{count: 1, prepare: [python3, warm.py], timeout: 90s}}}\n"));
    EXPECT_EQ(built.spares(), 1U);
    EXPECT_EQ(built.prepare(), (PrepareSpec{.program = {"python3", "warm.py"}, .timeout = Duration::seconds(90)}));
    EXPECT_EQ(job(text(launcher, "{count: 1}}}\n")).prepare(), (PrepareSpec{.timeout = Duration::seconds(600)}));
  }
}

TEST(Spares, HaveNoRankThatTheirProgramCouldName) {
  const SpecOutcome outcome = load("launch: {local: {spares: {count: 1, prepare: [warm, $(self.rank)]}}}\n");
  EXPECT_EQ(ids(outcome), std::vector<std::string>{"E0215"});
  EXPECT_EQ(outcome.diagnostics.at(0).message, "nothing is expanded in `spares.prepare`: a spare has no rank");
}

TEST(LaunchSsh, RefusesWhatIsNoHost) {
  EXPECT_EQ(faults("{hosts: [a, b, a]}"), std::vector<std::string>{"E0208 3:30"});
  EXPECT_EQ(faults("{hosts: ['a[1-2]', {name: a2}]}"), std::vector<std::string>{"E0208 3:41"});
  EXPECT_EQ(faults("{hosts: []}"), std::vector<std::string>{"E0208 3:23"});
  EXPECT_EQ(faults("{hosts: [a, []]}"), std::vector<std::string>{"E0208 3:27"});
  EXPECT_EQ(faults("{hosts: 'n[1-4097]'}"), std::vector<std::string>{"E0307 3:23"});
  EXPECT_EQ(faults("{hosts: [a, {name: b, port: 0}]}"), std::vector<std::string>{"E0206 3:43"});
  EXPECT_EQ(faults("{hosts: [a, {name: b, host_key: x}]}"), std::vector<std::string>{"E0219 3:47"});
}

TEST(LaunchSsh, RefusesWhatWouldMeanSomethingElseElsewhere) {
  EXPECT_EQ(faults("{hosts: [a, b], user: -lroot}"), std::vector<std::string>{"E0218 3:37"});
  EXPECT_EQ(faults("{hosts: [a, b], identity: ~bob/id}"), std::vector<std::string>{"E0220 3:41"});
  EXPECT_EQ(faults("{hosts: [a, b], known_hosts: $HOME/known}"), std::vector<std::string>{"E0220 3:44"});
  EXPECT_EQ(faults("{hosts: [a, b], worker: bin/worker}"), std::vector<std::string>{"E0220 3:39"});
  EXPECT_EQ(faults("{hosts: [a, b], jump: [login1, -J]}"), std::vector<std::string>{"E0217 3:46"});
}

TEST(LaunchSsh, NeedsEnoughHosts) {
  EXPECT_EQ(faults("{hosts: a}"), std::vector<std::string>{"E0304 3:23"});
  const SpecOutcome spare = load("launch: {ssh: {hosts: 'n[1-3]', spares: 2}}\n");
  EXPECT_EQ(ids(spare), std::vector<std::string>{"E0304"});
  EXPECT_EQ(spare.diagnostics.at(0).help, "1 host more would work, or `spares: 1`");
}

TEST(HostsFile, BecomesPartOfTheJob) {
  const SpecOutcome outcome =
      load("launch: {ssh: {hosts_file: hosts.txt, user: alice}}\n", "n[1-2]  # two\n\nn3 user=bob\n");
  ASSERT_TRUE(outcome.loaded) << render(outcome);
  const LaunchSsh& launch = *outcome.loaded->spec.launch.as<LaunchSsh>();
  ASSERT_EQ(launch.hosts.size(), 3U);
  EXPECT_EQ(launch.hosts[0].user, "alice");
  EXPECT_EQ(launch.hosts[2].user, "bob");
  // Whoever reads the job's own text later has no such file.
  SpecSurroundings bare = around();
  bare.read_hosts = {};
  const SpecOutcome again =
      load_spec({.name = "spec.yaml", .text = outcome.loaded->text, .directory = "/home/u/job"}, bare);
  ASSERT_TRUE(again.loaded) << render(again) << outcome.loaded->text;
  EXPECT_EQ(again.loaded->spec, outcome.loaded->spec);
  const auto values =
      effective_values(outcome.loaded->tree, outcome.loaded->spec, *find_key(spec_schema(), "launch.ssh.hosts"));
  ASSERT_EQ(values.size(), 1U);
  EXPECT_EQ(values[0].value, "'n[1-3]'");
  EXPECT_EQ(values[0].source, EffectiveValue::Source::kDerived);
}

TEST(HostsFile, IsFoundFromTheFolderOfTheSpecOrTheHome) {
  EXPECT_EQ(ssh("{hosts_file: hosts.txt}", "a\nb\n").hosts.size(), 2U);
  EXPECT_EQ(ssh("{hosts_file: ~/hosts.txt}", "a\nb\n").hosts.size(), 2U);
  EXPECT_EQ(ssh("{hosts_file: /home/u/hosts.txt}", "a\nb\n").hosts.size(), 2U);
  EXPECT_EQ(faults("{hosts_file: other.txt}"), std::vector<std::string>{"E0013 3:28"});
  EXPECT_EQ(faults("{hosts_file: ~bob/hosts.txt}"), std::vector<std::string>{"E0220 3:28"});
}

TEST(HostsFile, ShowsItsOwnLines) {
  const SpecOutcome outcome = load("launch: {ssh: {hosts_file: hosts.txt}}\n", "a\n  b slots=4\n-x\n");
  EXPECT_EQ(render(outcome),
            "error[E0221]: a file of hosts has one host, or one list of hosts, on each line\n"
            " --> specs/hosts.txt:2:5\n"
            "  |\n"
            "2 |   b slots=4\n"
            "  |     ^^^^^^^ is not understood\n"
            "  = help: leave it out: `dims` of a mesh say how many ranks a host has\n");
  EXPECT_EQ(faults("{hosts_file: hosts.txt}", "a\n-x\n"), std::vector<std::string>{"E0208 2:1"});
  EXPECT_EQ(faults("{hosts_file: hosts.txt}", "# none\n"), std::vector<std::string>{"E0208 3:28"});
  EXPECT_EQ(faults("{hosts_file: hosts.txt}", "a b\n"), std::vector<std::string>{"E0221 1:3"});
  EXPECT_EQ(faults("{hosts_file: hosts.txt}", "a user=x user=y\n"), std::vector<std::string>{"E0221 1:10"});
  EXPECT_EQ(faults("{hosts_file: hosts.txt}", "\xff\n"), std::vector<std::string>{"E0008 0:0"});
  EXPECT_EQ(faults("{hosts_file: hosts.txt}", "a\n"), std::vector<std::string>{"E0304 3:28"})
      << "shown where it is named";
}

// Whoever looks at a stranger's spec shows no file of theirs to whoever reads what they see.
TEST(HostsFile, OutsideOfTheSpecsFolderIsNotShown) {
  const std::string fault =
      "error[E0221]: /home/u/hosts.txt:2:3: a bad line in a file of hosts\n"
      " --> specs/spec.yaml:3:28\n"
      "  |\n"
      "3 | launch: {ssh: {hosts_file: /home/u/hosts.txt}}\n"
      "  |                            ^^^^^^^^^^^^^^^^^\n"
      "  = help: nothing of that file is shown, for it lies outside of the spec's folder\n";
  EXPECT_EQ(render(load("launch: {ssh: {hosts_file: /home/u/hosts.txt}}\n", "a\nb topsecret\n")), fault);
  for (const char* content :
       {"topsecret,\n", "-topsecret\n", "a\na user=topsecret user=topsecret\n", "::1 topsecret\n"}) {
    const std::string shown = render(load("launch: {ssh: {hosts_file: ../hosts.txt}}\n", content));
    EXPECT_EQ(shown.find("topsecret"), std::string::npos) << shown;
    EXPECT_NE(shown.find("nothing of that file is shown"), std::string::npos) << shown;
  }
  // A link in that folder leads out of it.
  SpecSurroundings linked = around("b topsecret\n");
  linked.real_path = [](const std::string& path) { return path == "/home/u/job/hosts.txt" ? "/etc/secret" : path; };
  const std::string shown = render(load_spec(
      {.name = "s.yaml", .text = around_top("launch: {ssh: {hosts_file: hosts.txt}}\n"), .directory = "/home/u/job"},
      linked));
  EXPECT_EQ(shown.find("topsecret"), std::string::npos) << shown;
}

TEST(MovedSpec, FindsTheFilesOfSshAgain) {
  const std::string moved =
      moved_spec("launch: {ssh: {identity: id, known_hosts: ../k, config: none}}\n", {.from = "/a/c", .to = "/b"});
  EXPECT_NE(moved.find("identity: /a/c/id"), std::string::npos) << moved;
  EXPECT_NE(moved.find("known_hosts: /a/k"), std::string::npos) << moved;
  EXPECT_NE(moved.find("config: none"), std::string::npos) << moved;
  EXPECT_NE(moved_spec("launch: {ssh: {config: c}}\n", {.from = "/a", .to = "/b"}).find("/a/c"), std::string::npos);
}

TEST(FixedPorts, AreCountedOnEachMachine) {
  const auto with = [](std::string_view meshes) {
    const std::string yaml = text("version: 1\njob: j\nlaunch: {ssh: {hosts: 'n[1-4]'}}\nmeshes:\n", meshes);
    return ids_and_places(load_spec({.name = "s", .text = yaml, .directory = "/"}, around()));
  };
  EXPECT_EQ(with("  a: {dims: {host: 2, gpu: 1}, program: [x], ports: {http: 80}}\n"
                 "  b: {dims: {host: 2, gpu: 1}, program: [x], ports: {http: 80}}\n"),
            std::vector<std::string>{});
  EXPECT_EQ(with("  a: {dims: {host: 2, gpu: 2}, program: [x], ports: {http: 80}}\n"),
            std::vector<std::string>{"E0313 5:60"});
  EXPECT_EQ(with("  a: {dims: {host: 2, gpu: 1}, program: [x], ports: {http: 80}}\n"
                 "  b: {dims: {host: 1, gpu: 1}, program: [x], hosts: {like: a}, ports: {http: 80}}\n"),
            std::vector<std::string>{"E0313 6:78"});
}

TEST(LaunchFlag, RunsASpecOnOtherHosts) {
  SpecParts parts;
  parts.files.push_back({.name = "s", .text = around_top("launch: {local: {hosts: 9}}\n"), .directory = "/"});
  parts.launch = FlagText{.text = "--launch ssh:n[1-3],x", .begin = 9};
  const SpecOutcome outcome = load_spec(parts, around());
  ASSERT_TRUE(outcome.loaded) << render(outcome);
  EXPECT_EQ(outcome.loaded->spec.launch.as<LaunchSsh>()->hosts.size(), 4U);
  parts.launch = FlagText{.text = "--launch ssh", .begin = 9};
  EXPECT_EQ(ids_and_places(load_spec(parts, around())), std::vector<std::string>{"E0101 1:10"});
  parts.launch = FlagText{.text = "--launch ssh:n1", .begin = 9};
  EXPECT_EQ(ids_and_places(load_spec(parts, around())), std::vector<std::string>{"E0304 1:14"});
  parts.launch = FlagText{.text = "--launch ssh:-x", .begin = 9};
  EXPECT_EQ(ids_and_places(load_spec(parts, around())), std::vector<std::string>{"E0208 1:14"});
}

}  // namespace
}  // namespace monarch
