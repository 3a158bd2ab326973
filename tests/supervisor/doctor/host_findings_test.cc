#include "supervisor/doctor/host_findings.h"

#include <gtest/gtest.h>

#include "supervisor/doctor/host_requests.h"
#include "supervisor/doctor/odd_hosts.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "transport/base/text.h"

namespace monarch::doctor {
namespace {

constexpr std::uint64_t kGiB = 1ULL << 30U;

HostFacts well() {
  HostFacts facts;
  facts.version = MONARCH_VERSION;
  facts.machine = "x86_64";
  facts.user = "alice";
  facts.files = {.soft = 1024, .hard = 1048576};
  facts.locked = {.soft = 8U << 20U, .hard = 8U << 20U};
  facts.processes = {.soft = 100000, .hard = 100000};
  facts.ptrace_scope = 1;
  for (const std::string name : {"worker", "state and logs", "shared memory", "temporary files"}) {
    facts.places.push_back(
        {.name = name, .path = "/" + name, .there = true, .free_bytes = 20 * kGiB, .total_bytes = 40 * kGiB});
  }
  facts.inventory.cpus = 8;
  facts.inventory.gpus = {{0, "GPU-a"}, {1, "GPU-b"}};
  facts.interfaces = {{.name = "eth0", .address = "10.0.0.2", .mtu = 9000}};
  facts.address = "10.0.0.2";
  return facts;
}

HostSeen host(const std::string& name = "h1") {
  HostSeen seen{.name = name, .route = {{.name = name, .address = name, .user = "alice"}}, .facts = well()};
  seen.clock = ClockSample{.offset = Duration::milliseconds(3), .bound = Duration::milliseconds(2)};
  seen.call_back = {{{"login", "10.0.0.1", 7000}, ""}};
  seen.neighbours = {{{"h2", "10.0.0.3", 40000}, ""}};
  seen.folders = {{.name = "storage", .path = "/data", .there = true}};
  seen.programs = {{.mesh = "m", .program = "python3", .found = "/usr/bin/python3", .error = {}}};
  seen.written = {{.folder = "/data", .content = "x", .error = {}}};
  seen.tokens = {{.writer = "h1", .expected = "x", .found = {.folder = "/data", .content = "x", .error = {}}}};
  return seen;
}

// The one finding, as "check: found".
std::string one(const HostSeen& seen, Health health) {
  const Findings findings = findings_of(seen);
  if (findings.size() != 1) return text(findings.size(), " findings");
  EXPECT_EQ(findings[0].health, health) << findings[0].found;
  EXPECT_FALSE(findings[0].means.empty());
  EXPECT_FALSE(findings[0].fix.empty());
  return text(findings[0].check, ": ", findings[0].found);
}
template <class Change>
std::string with(Change change, Health health = Health::kWarning) {
  HostSeen seen = host();
  change(seen);
  return one(seen, health);
}

TEST(HostFindings, AreNoneOfAHostThatIsWell) { EXPECT_TRUE(findings_of(host()).empty()); }

TEST(HostFindings, NameTheClassOfAFailure) {
  const auto failed = [](LaunchFailureKind kind) {
    return with(
        [&](HostSeen& seen) { seen = {.name = "h1", .failure = LaunchFailure{.kind = kind, .message = "why"}}; },
        Health::kFailed);
  };
  EXPECT_EQ(failed(LaunchFailureKind::kUnreachable), "reach: unreachable: why");
  EXPECT_EQ(failed(LaunchFailureKind::kHostKeyChanged), "host key: host key changed: why");
  EXPECT_EQ(failed(LaunchFailureKind::kAuthentication), "login: not let in: why");
  EXPECT_EQ(failed(LaunchFailureKind::kNotExecutable), "worker: not executable: why");
  EXPECT_EQ(failed(LaunchFailureKind::kDiskFull), "worker: disk full: why");
  EXPECT_EQ(with([](HostSeen& seen) { seen = {.name = "h1", .silent = true}; }, Health::kFailed),
            "reach: no answer when the time was up");
}

TEST(HostFindings, ClockIsJudgedByWhatIsCertain) {
  const auto off = [](Duration offset, Duration bound) {
    return [=](HostSeen& seen) { seen.clock = ClockSample{offset, bound}; };
  };
  EXPECT_EQ(with(off(Duration::seconds(3600), Duration::milliseconds(2))),
            "clock: its clock is 1h ahead of this machine's (to within 2ms)");
  EXPECT_EQ(with(off(Duration() - Duration::seconds(60), Duration::milliseconds(2))),
            "clock: its clock is 1m behind this machine's (to within 2ms)");
  EXPECT_EQ(with(off(Duration::seconds(3), Duration::seconds(2))), "0 findings") << "it may be 1 s";
  EXPECT_EQ(with(off(Duration::milliseconds(1900), Duration())), "0 findings");
}

TEST(HostFindings, ClockIsReckonedWithoutTheTimeThatTheHostTook) {
  const auto at = [](std::int64_t ms) { return WallTime{ms * 1'000'000}; };
  const ClockSample sample =
      clock_sample(at(1000), at(5010), at(8010), at(4020));  // 4 s ahead, 10 ms each way, 3 s busy
  EXPECT_EQ(sample.offset, Duration::seconds(4));
  EXPECT_EQ(sample.bound, Duration::milliseconds(10));
}

TEST(HostFindings, LimitsThatAreTooLowAreNamed) {
  EXPECT_EQ(with([](HostSeen& s) { s.facts->files = {.soft = 256, .hard = 512}; }),
            "limits: open files (ulimit -n): 256, at most 512");
  EXPECT_EQ(with([](HostSeen& s) { s.facts->processes.soft = 100; }), "limits: processes and threads (ulimit -u): 100");
  EXPECT_EQ(with([](HostSeen& s) {
              s.facts->rdma = {{"mlx5_0:1", "ACTIVE", "Ethernet", ""}};
            }),
            "limits: locked memory (ulimit -l): 8192 KiB")
      << "it matters where there is RDMA";
}

TEST(HostFindings, PlacesWithoutRoomAreNamed) {
  const auto left = [](std::size_t place, std::uint64_t bytes) {
    return [=](HostSeen& seen) { seen.facts->places[place].free_bytes = bytes; };
  };
  EXPECT_EQ(with(left(1, kGiB / 2)), "disk: state and logs: /state and logs: 512 MiB of 40 GiB free");
  EXPECT_EQ(with(left(1, 0), Health::kFailed), "disk: state and logs: /state and logs: 0 bytes of 40 GiB free");
  EXPECT_EQ(with(left(0, 0)), "0 findings") << "what is there needs no room";
  EXPECT_EQ(with(left(3, 0)), "disk: temporary files: /temporary files: 0 bytes of 40 GiB free");
  EXPECT_EQ(with([](HostSeen& s) { s.facts->places[1].error = "writing to a file: No space left on device"; },
                 Health::kFailed),
            "disk: state and logs: /state and logs: writing to a file: No space left on device");
  EXPECT_EQ(with([](HostSeen& s) { s.facts->places[1].free_files = 3; }),
            "disk: state and logs: /state and logs: 3 more files can be made");
  EXPECT_EQ(with([](HostSeen& s) { s.facts->places[2].total_bytes = s.facts->places[2].free_bytes = 64U << 20U; }),
            "shared memory: shared memory: /shared memory: 64 MiB of 64 MiB free");
}

TEST(HostFindings, DevicesThatDoNotWorkAreNamed) {
  EXPECT_EQ(with([](HostSeen& s) {
              s.facts->rdma = {{"mlx5_0:1", "DOWN", "", ""}};
              s.facts->locked.soft = kUnlimited;
            }),
            "RDMA: port mlx5_0:1 is DOWN");
  EXPECT_EQ(with([](HostSeen& s) { s.facts->gpus_can_be_opened = false; }, Health::kFailed),
            "GPUs: /dev/nvidiactl cannot be opened");
  EXPECT_EQ(with([](HostSeen& s) {
              s.facts->gpu_driver = true;
              s.facts->inventory.gpus.clear();
            }),
            "GPUs: none that can be used, though the nvidia driver is loaded");
}

TEST(HostFindings, WhatEarlierJobsLeftIsNamedWithItsProcesses) {
  HostSeen seen = host();
  seen.facts->orphans = {{.job_uuid = "abc", .host = "h1", .pids = {7, 9}, .program = "sleep 1000"}};
  EXPECT_EQ(one(seen, Health::kWarning),
            "earlier jobs: 2 processes of job abc, which has no worker there any more: 7, 9 (sleep 1000)");
  EXPECT_NE(findings_of(seen)[0].fix.find("kill -KILL 7 9"), std::string::npos);
  EXPECT_EQ(with([](HostSeen& s) { s.facts->stale_sockets = {"/run/user/1/monarch/w-1"}; }, Health::kNote),
            "earlier jobs: 1 folder of sockets whose job does not run there, such as /run/user/1/monarch/w-1");
}

TEST(HostFindings, AWorkerOfAnotherVersionIsNamed) {
  EXPECT_EQ(with([](HostSeen& s) { s.facts->version = "0.0.1"; }, Health::kFailed),
            "worker: the worker there is of version 0.0.1, this is " MONARCH_VERSION);
}

TEST(HostFindings, YamaAndLogindAreNamed) {
  EXPECT_EQ(with([](HostSeen& s) { s.facts->ptrace_scope = 3; }), "stack dumps: Yama ptrace_scope is 3");
  EXPECT_EQ(with([](HostSeen& s) { s.facts->ptrace_scope.reset(); }), "0 findings");
  EXPECT_EQ(with([](HostSeen& s) { s.facts->kills_at_logout = true; }, Health::kFailed),
            "logout: logind ends what a session leaves (KillUserProcesses), and no session is exempt");
}

TEST(HostFindings, CommandsToCopyTakePathsAsTheyAre) {
  HostSeen seen = host();
  seen.facts->places.front() = {.name = "worker", .path = "/scratch/my jobs", .error = "Permission denied"};
  const Findings findings = findings_of(seen);
  ASSERT_EQ(findings.size(), 1U);
  // In quotes for the shell there, within quotes for the one here.
  EXPECT_NE(findings[0].fix.find(R"('df -h '\''/scratch/my jobs'\''; df -i )"), std::string::npos) << findings[0].fix;
  seen = host();
  seen.facts->gpus_can_be_opened = true;
  seen.facts->gpu_driver = true;
  seen.facts->inventory.gpus.clear();
  ASSERT_EQ(findings_of(seen).size(), 1U);
  EXPECT_NE(findings_of(seen)[0].fix.find("'nvidia-smi; echo $CUDA_VISIBLE_DEVICES'"), std::string::npos);
}

TEST(HostFindings, BlockedConnectionsNameBothEnds) {
  EXPECT_EQ(with([](HostSeen& s) { s.call_back[0].error = "no answer within 4s"; }, Health::kFailed),
            "call-back: blocked: it does not reach this machine at 10.0.0.1 port 7000: no answer within 4s");
  EXPECT_EQ(with([](HostSeen& s) { s.neighbours[0].error = "connect: Connection refused"; }, Health::kFailed),
            "neighbours: blocked: it does not reach h2 at 10.0.0.3 port 40000: connect: Connection refused");
  EXPECT_EQ(with([](HostSeen& s) { s.no_call_back_because = "behind a jump host"; }, Health::kFailed),
            "call-back: behind a jump host");
}

TEST(HostFindings, StorageIsJudgedByWhatIsSeenOfATokenAndByTrying) {
  EXPECT_EQ(with([](HostSeen& s) { s.tokens[0].found = {.folder = "/data", .content = "", .error = "No such file"}; },
                 Health::kFailed),
            "storage: /data is not shared: what h1 wrote there is not seen (No such file)");
  EXPECT_EQ(with([](HostSeen& s) { s.tokens[0].found.content = "y"; }, Health::kFailed),
            "storage: /data is not shared: what h1 wrote there is not seen");
  EXPECT_EQ(with([](HostSeen& s) { s.folders[0].error = "making a file: Read-only file system"; }, Health::kFailed),
            "storage: /data: making a file: Read-only file system");
  EXPECT_EQ(with([](HostSeen& s) { s.folders[0] = {.name = "storage", .path = "/data", .error = "No such file"}; },
                 Health::kFailed),
            "storage: /data is not there: No such file");
}

TEST(HostFindings, ProgramsThatAreMissingAreNamedWithTheirMesh) {
  EXPECT_EQ(with([](HostSeen& s) { s.programs[0].error = "not in PATH (/bin)"; }, Health::kFailed),
            "mesh m: program python3: not in PATH (/bin)");
}

TEST(OddHosts, AreNamedWhereMostAgree) {
  std::vector<HostSeen> hosts = {host("h1"), host("h2"), host("h3")};
  EXPECT_TRUE(odd_hosts(hosts).empty());
  hosts[1].facts->inventory.gpus.pop_back();
  hosts[2].facts->interfaces[0].mtu = 1500;
  const HostFindings odd = odd_hosts(hosts);
  ASSERT_EQ(odd.size(), 2U);
  EXPECT_EQ(odd[0].host, "h2");
  EXPECT_EQ(odd[0].finding.found, "1 GPU, where 2 of 3 hosts have 2 GPUs");
  EXPECT_EQ(odd[1].host, "h3");
  EXPECT_EQ(odd[1].finding.found, "an MTU of 1500, where 2 of 3 hosts have an MTU of 9000");
}

TEST(OddHosts, AreNobodyWhereNoMostAgree) {
  std::vector<HostSeen> hosts = {host("h1"), host("h2")};
  hosts[1].facts->inventory.gpus.pop_back();
  EXPECT_TRUE(odd_hosts(hosts).empty()) << "of two nobody is odd";
  hosts.push_back(host("h3"));
  hosts.push_back(host("h4"));
  hosts[3].facts->inventory.gpus.pop_back();
  EXPECT_TRUE(odd_hosts(hosts).empty()) << "two and two";
}

JobSpec needing_gpus() {
  JobSpec spec;
  LaunchSsh ssh;
  for (const std::string name : {"h1", "h2", "h3"}) ssh.hosts.push_back({.name = name, .address = name});
  spec.launch = ssh;
  for (const std::string name : {"cpu", "gpu"}) {
    MeshSpec mesh;
    mesh.name = name;
    mesh.dims = {{"slot", 2}};
    mesh.per_host_dims = 1;
    mesh.program = {"true"};
    if (name == "gpu") mesh.resources.gpus = 2;
    spec.meshes.push_back(mesh);
  }
  return spec;
}

TEST(HostFindings, ResourcesAreThoseOfTheRanksThatComeToAHost) {
  const JobSpec spec = needing_gpus();
  const HostInventory two = well().inventory;
  EXPECT_EQ(lacking_of(spec, 0, two), "") << "its mesh wants none";
  EXPECT_NE(lacking_of(spec, 1, two).find("4 GPUs"), std::string::npos) << lacking_of(spec, 1, two);
  EXPECT_NE(lacking_of(spec, 2, two), "") << "a spare may come to any slot";
}

TEST(HostRequests, LookForWhatTheRanksOfAHostNeed) {
  const JobSpec spec = needing_gpus();
  EXPECT_FALSE(look_request(spec, 0).wake_gpus);
  EXPECT_TRUE(look_request(spec, 2).wake_gpus);
  ASSERT_EQ(look_request(spec, 0).programs.size(), 1U);
  EXPECT_EQ(look_request(spec, 0).programs[0].mesh, "cpu");
}

TEST(HostRequests, LookForNothingThatAWorkspaceBrings) {
  JobSpec spec = needing_gpus();
  spec.directory = "/home/alice";
  spec.meshes[0].program = {"./train.sh"};
  EXPECT_EQ(look_request(spec, 0).folders.at(0).path, "/home/alice");
  EXPECT_EQ(look_request(spec, 0).programs.size(), 1U);
  spec.workspace = WorkspaceSpec{.path = "/home/alice"};
  EXPECT_TRUE(look_request(spec, 0).folders.empty());
  EXPECT_TRUE(look_request(spec, 0).programs.empty());
  spec.meshes[0].program = {"python3", "train.py"};
  EXPECT_EQ(look_request(spec, 0).programs.size(), 1U) << "PATH is the host's own";
}

TEST(HostRequests, LetNeighboursKnockBothWaysRoundAndOneHostWrite) {
  JobSpec spec;
  spec.storage = {{.path = "/data", .shared = true}, {.path = "/scratch"}};
  std::vector<HostSeen> hosts = {host("h1"), host("h2"), host("h3"), host("h4")};
  hosts[0].folders[0].error = "Read-only file system";
  std::vector<Present> present;
  for (const std::size_t i : {0U, 1U, 3U}) present.push_back({i, {hosts[i].name, "10.0.0.1", 4000}});
  const auto asked = meet_requests(spec, present, hosts, "token");
  const auto names = [](const CheckRequest& request) {
    std::string all;
    for (const DoorCall& call : request.calls) all += call.name + " ";
    return all;
  };
  EXPECT_EQ(names(*asked[0]), "h2 h4 ");
  EXPECT_EQ(names(*asked[1]), "h4 h1 ");
  EXPECT_EQ(names(*asked[2]), "h1 h2 ");
  EXPECT_TRUE(asked[0]->write.empty()) << "it cannot";
  ASSERT_EQ(asked[1]->write.size(), 1U) << "what is not shared needs no token";
  const auto reading = read_requests(present, hosts, {{1, asked[1]->write[0]}});
  EXPECT_FALSE(reading[0]) << "its folder is known to be wrong";
  EXPECT_FALSE(reading[1]) << "it wrote";
  ASSERT_TRUE(reading[2]);
  EXPECT_EQ(reading[2]->read.at(0).folder, "/data");
}

TEST(HostRequests, OfTwoHostsAreOneKnockEachAndOfOneNone) {
  const std::vector<HostSeen> hosts = {host("h1"), host("h2")};
  const std::vector<Present> two = {{0, {"h1", "10.0.0.1", 4000}}, {1, {"h2", "10.0.0.2", 4000}}};
  EXPECT_EQ(meet_requests(JobSpec{}, two, hosts, "token")[0]->calls.size(), 1U);
  EXPECT_FALSE(meet_requests(JobSpec{}, {two[0]}, hosts, "token")[0]);
}

}  // namespace
}  // namespace monarch::doctor
