// Checks of `monarch doctor` against machines that are made of files, and checks that hang, crash or lie.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "supervisor/doctor/device_checks.h"
#include "supervisor/doctor/machine_checks.h"
#include "supervisor/doctor/need_checks.h"
#include "supervisor/doctor/run_checks.h"
#include "supervisor/doctor/spec_checks.h"
#include "supervisor/doctor/state_checks.h"
#include "supervisor/launch/launcher_checks.h"
#include "supervisor/launch/local/local_spec.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "tests/transport/base/patience.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"
#include "transport/process/process_scan.h"

namespace monarch::doctor {

namespace {

class Doctor : public testing::Test {
 protected:
  Doctor() {
    std::string pattern = (std::filesystem::temp_directory_path() / "doctor-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    places_ = {.proc = root_ + "/proc", .sys = root_ + "/sys", .dev = root_ + "/dev"};
  }
  ~Doctor() override { std::filesystem::remove_all(root_); }

  void file(const std::string& path, const std::string& content) {
    const std::filesystem::path full = root_ + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << content;
  }

  std::string root_;
  Places places_;
};

Health worst(const Findings& findings) {
  Health health = Health::kFine;
  for (const Finding& finding : findings) health = std::max(health, finding.health);
  return health;
}

std::string found(const Findings& findings) {
  std::string all;
  for (const Finding& finding : findings) all += finding.found + "\n";
  return all;
}

}  // namespace

TEST_F(Doctor, CountsGpusByModelWithoutCuda) {
  EXPECT_EQ(worst(check_gpus(places_)), Health::kFine);
  file("/proc/driver/nvidia/version", "NVRM version: 550\n");
  EXPECT_EQ(worst(check_gpus(places_)), Health::kWarning);
  for (const char* gpu : {"0000:01:00.0", "0000:02:00.0"}) {
    file(text("/proc/driver/nvidia/gpus/", gpu, "/information"), "Model: \t\t NVIDIA H200\nIRQ: 1\n");
  }
  EXPECT_EQ(count_gpus(places_), 2U);
  Findings findings = check_gpus(places_);
  EXPECT_EQ(worst(findings), Health::kFailed) << "no device file";
  EXPECT_TRUE(found(findings).starts_with("2 × NVIDIA H200;")) << found(findings);
  file("/dev/nvidiactl", "");
  findings = check_gpus(places_);
  EXPECT_EQ(worst(findings), Health::kFine);
  EXPECT_EQ(found(findings), "2 × NVIDIA H200\n");
}

TEST_F(Doctor, NamesRdmaPortsThatAreDown) {
  EXPECT_EQ(worst(check_rdma(places_)), Health::kFine);
  EXPECT_FALSE(has_rdma(places_));
  file("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  file("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
  file("/sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
  EXPECT_TRUE(has_rdma(places_));
  EXPECT_EQ(worst(check_rdma(places_)), Health::kWarning) << "no uverbs";
  file("/dev/infiniband/uverbs0", "");
  EXPECT_EQ(found(check_rdma(places_)), "mlx5_0:1: ACTIVE, InfiniBand, 400 Gb/sec (4X NDR)\n");
  EXPECT_EQ(worst(check_rdma(places_)), Health::kFine);
  file("/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
  EXPECT_EQ(worst(check_rdma(places_)), Health::kWarning);
}

TEST_F(Doctor, JudgesYamaClockAndLimits) {
  EXPECT_EQ(worst(check_tracing(places_)), Health::kFine);
  file("/proc/sys/kernel/yama/ptrace_scope", "1\n");
  EXPECT_EQ(worst(check_tracing(places_)), Health::kFine);
  file("/proc/sys/kernel/yama/ptrace_scope", "2\n");
  EXPECT_EQ(worst(check_tracing(places_)), Health::kWarning);
  file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
  EXPECT_EQ(worst(check_clock(places_)), Health::kFine);
  file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
  EXPECT_EQ(worst(check_clock(places_)), Health::kWarning);

  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  EXPECT_EQ(worst(check_limits({unlimited, unlimited, unlimited}, true)), Health::kFine);
  EXPECT_EQ(worst(check_limits({{256, 256}, unlimited, unlimited}, false)), Health::kWarning);
  EXPECT_EQ(worst(check_limits({unlimited, {65536, 65536}, unlimited}, false)), Health::kFine);
  EXPECT_EQ(worst(check_limits({unlimited, {65536, 65536}, unlimited}, true)), Health::kWarning);
  EXPECT_EQ(worst(check_limits({unlimited, unlimited, {0, 0}}, false)), Health::kNote);
}

TEST_F(Doctor, TriesThePlacesOfJobsAndLeavesNothing) {
  StateEnvironment environment{.monarch_state_dir = root_ + "/state", .xdg_runtime_dir = "", .uid = ::geteuid()};
  EXPECT_EQ(worst(check_state_directory(environment)), Health::kFine) << "not there yet";
  std::filesystem::create_directory(root_ + "/state");
  std::filesystem::permissions(root_ + "/state", std::filesystem::perms::owner_all);
  const Findings fine = check_state_directory(environment);
  EXPECT_LT(worst(fine), Health::kFailed) << found(fine);
  EXPECT_NE(found(fine).find("mode 0700"), std::string::npos) << found(fine);
  EXPECT_TRUE(std::filesystem::is_empty(root_ + "/state"));
  std::filesystem::permissions(root_ + "/state", std::filesystem::perms::all);
  EXPECT_EQ(worst(check_state_directory(environment)), Health::kFailed);
  environment.monarch_state_dir = "relative";
  EXPECT_EQ(worst(check_state_directory(environment)), Health::kFailed);

  std::filesystem::create_directory(root_ + "/run");
  environment.xdg_runtime_dir = root_ + "/run";
  EXPECT_EQ(worst(check_runtime_directory(environment)), Health::kFine);
  const std::string deep = root_ + "/" + std::string(100, 'd');
  std::filesystem::create_directory(deep);
  environment.xdg_runtime_dir = deep;
  EXPECT_EQ(worst(check_runtime_directory(environment)), Health::kFailed);
}

TEST_F(Doctor, LooksForProgramsAsTheRankWould) {
  file("/tree/here.sh", "#!/bin/sh\n");
  file("/bin/tool", "#!/bin/sh\n");
  std::filesystem::permissions(root_ + "/bin/tool", std::filesystem::perms::owner_all);
  const std::string work = root_ + "/tree";
  EXPECT_EQ(*find_program("tool", work, text(root_, "/none:", root_, "/bin")), root_ + "/bin/tool");
  EXPECT_EQ(find_program("tool", work, root_ + "/none").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(find_program("./here.sh", work, "").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(find_program("./gone.sh", work, "").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(*find_program("../bin/tool", work, ""), work + "/../bin/tool");
  EXPECT_EQ(find_program("tree", root_, root_).error().code, ErrorCode::kInvalid) << "a folder";

  JobSpec spec;
  spec.directory = work;
  spec.launch = LaunchLocal{.hosts = 1};
  MeshSpec mesh;
  mesh.name = "m";
  mesh.dims = {{"host", 1}};
  mesh.program = {"nosuch"};
  mesh.env = {{"PATH", root_ + "/bin"}};
  mesh.env_pass = {"TOKEN", "WANDB_*"};
  spec.meshes = {mesh};
  Findings findings = spec_checks(spec, {}).front().run();
  EXPECT_EQ(worst(findings), Health::kFailed);
  EXPECT_EQ(found(findings), "no nosuch in PATH\nenv_pass: TOKEN is not set in this shell\n");
  spec.meshes[0].program = {"tool"};
  spec.meshes[0].workdir = root_ + "/none";
  findings = spec_checks(spec, {{"TOKEN", "x"}}).front().run();
  EXPECT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].health, Health::kFailed) << "no workdir";
  EXPECT_EQ(findings[1].health, Health::kFine);
}

// A mesh of `ranks` ranks on one host.
MeshSpec mesh_of(const std::string& name, std::uint32_t ranks) {
  MeshSpec mesh;
  mesh.name = name;
  mesh.dims = {{"slot", ranks}};
  mesh.per_host_dims = 1;
  mesh.program = {"true"};
  return mesh;
}

TEST_F(Doctor, LooksForTheProgramThatWraps) {
  file("/bin/tool", "#!/bin/sh\n");
  JobSpec spec;
  spec.directory = root_;
  spec.launch = LaunchLocal{.hosts = 1};
  spec.meshes = {mesh_of("m", 1)};
  spec.meshes[0].wrap = {root_ + "/bin/tool", "-x"};
  const Findings findings = spec_checks(spec, {}).front().run();
  EXPECT_EQ(found(findings), text(root_, "/bin/tool cannot be executed\n"));
  EXPECT_EQ(worst(findings), Health::kFailed);
}

TEST_F(Doctor, HoldsResourcesAgainstWhatTheMachineHas) {
  JobSpec spec;
  spec.launch = LaunchLocal{.hosts = 2};
  spec.meshes = {mesh_of("a", 2), mesh_of("b", 1)};
  spec.meshes[0].resources.cpus = 2;
  spec.meshes[1].resources.gpus = 1;
  spec.meshes[1].resources.cpus = 1;
  const HostInventory two_gpus{.cpus = 5, .gpus = {{.index = 0, .uuid = "GPU-a"}, {.index = 1, .uuid = "GPU-b"}}};
  EXPECT_EQ(found(check_resources(spec, two_gpus, root_)),
            "needs 4 cores, which are there\nneeds 1 GPU and 1 core, which are there\n");
  const Findings few = check_resources(spec, {.cpus = 4, .gpus = {}}, root_);
  EXPECT_EQ(worst(few), Health::kFailed);
  EXPECT_EQ(few[0].health, Health::kFine);
  EXPECT_EQ(few[1].found, "v2 needs 1 GPU, and there are 0");
  const Findings cores = check_resources(spec, {.cpus = 4, .gpus = two_gpus.gpus}, root_);
  EXPECT_EQ(cores[1].found,
            "v2 needs 1 core besides the 4 that other meshes and virtual hosts of its machine have, and there are 4");
}

TEST_F(Doctor, NamesTheJobThatHasAPortOrAGpu) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::uint16_t taken = ntohs(address.sin_port);
  JobSpec spec;
  spec.launch = LaunchLocal{.hosts = 1};
  spec.meshes = {mesh_of("m", 1)};
  spec.meshes[0].resources.gpus = 1;
  spec.meshes[0].ports = {{.name = "http", .fixed = taken}, {.name = "any", .fixed = {}}};
  const Findings findings = check_ports(spec, root_ + "/locks");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].health, Health::kFailed);
  EXPECT_EQ(findings[0].found, text("port ", taken, " (http): Address already in use"));
  EXPECT_EQ(worst(check_ports(spec, root_)), Health::kFailed);

  // A lock counts as long as its holder lives.
  file(text("/locks/port-", taken, ".demo-12ab.77.lock"), "");
  file("/locks/gpu-GPU-a.other-0001.78.lock", "");
  EXPECT_EQ(holder_of(text("port-", taken), root_ + "/locks"), std::nullopt);
  const UniqueFd lock(::open(text(root_, "/locks/port-", taken, ".demo-12ab.77.lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  EXPECT_EQ(check_ports(spec, root_ + "/locks")[0].found, text("port ", taken, " (http) is held by job demo-12ab"));
  const UniqueFd gpu(::open((root_ + "/locks/gpu-GPU-a.other-0001.78.lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(gpu.get(), LOCK_EX), 0);
  const HostInventory inventory{.cpus = 1, .gpus = {{.index = 3, .uuid = "GPU-a"}}};
  EXPECT_EQ(found(check_resources(spec, inventory, root_ + "/locks")),
            "needs 1 GPU, which are there\nGPU 3 is held by job other-0001\n");
}

TEST_F(Doctor, LooksForTheFilesOfSshOnThisMachineOnly) {
  file("/id", "key");
  std::filesystem::permissions(root_ + "/id", std::filesystem::perms::owner_read);
  JobSpec spec;
  spec.directory = "/there/alone";
  spec.launch = LaunchSsh{.hosts = {{.name = "a"}}, .identity = root_ + "/id", .known_hosts = root_ + "/none"};
  spec.meshes = {{.name = "m", .dims = {{"host", 1}}, .program = {"nosuch"}}};
  EXPECT_TRUE(spec_checks(spec, {}).at(0).run().empty()) << "the program lies on the hosts";
  EXPECT_EQ(worst(launcher_checks(spec, {}).front().run()), Health::kFailed) << "no known_hosts";
  LaunchSsh pinned = *spec.launch.as<LaunchSsh>();
  pinned.hosts[0].host_key = "SHA256:x";
  spec.launch = pinned;
  EXPECT_EQ(worst(launcher_checks(spec, {}).front().run()), Health::kFine) << "every host has its key";
  std::filesystem::permissions(root_ + "/id", std::filesystem::perms::all);
  EXPECT_EQ(worst(launcher_checks(spec, {}).front().run()), Health::kWarning);
  std::filesystem::remove(root_ + "/id");
  EXPECT_EQ(worst(launcher_checks(spec, {}).front().run()), Health::kWarning) << "an agent may have keys";
}

TEST_F(Doctor, LooksAtStorageWhereTheHostsAreThisMachine) {
  JobSpec spec;
  spec.launch = LaunchLocal{};
  spec.meshes = {{.name = "m", .dims = {{"host", 1}}, .program = {"true"}}};
  spec.storage = {{.path = root_}, {.path = root_ + "/none"}};
  Findings found;
  for (const Check& check : launcher_checks(spec, {})) {
    if (check.name == "storage") found = check.run();
  }
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].health, Health::kFine);
  EXPECT_EQ(found[1].health, Health::kFailed);
  EXPECT_NE(found[1].found.find("/none: No such file"), std::string::npos) << found[1].found;
}

TEST(RunChecks, SurvivesWhatHangsAndWhatCrashes) {
  const auto fine = [] { return Findings{{.check = "fine", .found = "yes \x1b[31m"}}; };
  const std::vector<Check> checks = {
      {.name = "fine", .run = fine},
      {.name = "hangs",
       .run = []() -> Findings {
         for (;;) ::pause();
       }},
      {.name = "crashes", .run = []() -> Findings { ::_exit(3); }},
      {.name = "last", .run = fine},
  };
  const Instant begun = boot_now();
  const Findings findings = run_checks(checks, Duration::milliseconds(300));
  EXPECT_LT(boot_now() - begun, Duration::seconds(20));
  ASSERT_EQ(findings.size(), 4U);
  EXPECT_EQ(findings[0].found, "yes \x1b[31m");
  EXPECT_EQ(findings[1].found, "no answer within 300ms");
  EXPECT_EQ(findings[1].health, Health::kFailed);
  EXPECT_EQ(findings[2].health, Health::kFailed);
  EXPECT_EQ(findings[3].health, Health::kFine);
}

TEST(RunChecks, HoldsNoTimeAgainstACheckInWhichItDidNotRunItself) {
  const auto stops_us = [] {
    while (read_process(::getppid())->state != 'S') pause_between_looks();  // it waits for us
    (void)::kill(::getppid(), SIGSTOP);
    (void)::poll(nullptr, 0, static_cast<int>(test_patience(Duration::seconds(2)).count_milliseconds()));
    (void)::kill(::getppid(), SIGCONT);
    return Findings{{.check = "stops", .health = Health::kFine, .found = "yes"}};
  };
  const std::vector<Check> checks = {{"stops", stops_us}, {"hangs", [] {
                                                             ::pause();
                                                             return Findings();
                                                           }}};
  const Duration limit = test_patience(Duration::seconds(1));
  const Findings findings = run_checks(checks, limit);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].found, "yes") << "it answered when we could hear it";
  const std::string begins = text("no answer within ", to_text(limit), " (this machine was late by ");
  EXPECT_EQ(findings[1].found.substr(0, begins.size()), begins);
}

}  // namespace monarch::doctor
