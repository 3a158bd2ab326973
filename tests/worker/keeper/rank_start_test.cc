#include <netinet/in.h>

#include "tests/worker/keeper/keeper_fixture.h"
#include "transport/process/cpu_affinity.h"
#include "worker/keeper/host_locks.h"
#include "worker/keeper/host_topology.h"

namespace monarch {
namespace {

// What a START says of one rank alone, through a real keeper.
class RankStartOf : public KeeperTest {
 protected:
  void SetUp() override {
    KeeperTest::SetUp();
    keeper_ = start_keeper();
    ASSERT_NE(keeper_, nullptr);
    enter();
  }
  std::string output(std::uint32_t rank) {
    std::string got(4096, '\0');
    const ssize_t count = ::read(pipes_[key(rank)][0].get(), got.data(), got.size());
    return count > 0 ? got.substr(0, static_cast<std::size_t>(count)) : "";
  }
  static bool can_bind(std::uint16_t port) {
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  std::vector<std::uint16_t> reserve(std::uint32_t count) {
    send(Reserve{MeshId(0), GangId(0), {Term(1), 1}, count, {}, {}});
    EXPECT_TRUE(until([&] { return reserved_.has_value(); }));
    EXPECT_EQ(reserved_->error, "");
    return reserved_->ports;
  }
  Child* keeper_ = nullptr;
};

TEST_F(RankStartOf, ItsOwnProgramAndWorkingDirectoryWin) {
  Start order = start_order({"", ""});
  order.program = {"/bin/pwd"};
  order.workdir = "/";
  order.ranks[1].program = {"/bin/sh", "-c", "echo own in $(pwd)"};
  order.ranks[1].workdir = folder_;
  run(order);
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded) && await_phase(1, RankPhase::kEnded));
  EXPECT_EQ(output(0), "/\n");
  EXPECT_EQ(output(1), "own in " + folder_ + "\n");
}

TEST_F(RankStartOf, ARelativeWorkingDirectoryLiesInTheWorkspace) {
  std::filesystem::create_directories(path("door") + "-tree/pkg");
  Start order = start_order({"pwd", "pwd"});
  order.workdir = ".";
  order.ranks[1].workdir = "pkg";
  run(order);
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded) && await_phase(1, RankPhase::kEnded));
  EXPECT_EQ(output(0), path("door") + "-tree\n");
  EXPECT_EQ(output(1), path("door") + "-tree/pkg\n");
}

TEST_F(RankStartOf, ItsOwnPortsAreFreeWhenItIsExecutedAndNotBefore) {
  const auto ports = reserve(3);
  ASSERT_EQ(ports.size(), 3U);
  Start order = start_order({"while ! [ -e " + path("end") + " ]; do sleep 0.01; done",
                             "while ! [ -e " + path("end") + " ]; do sleep 0.01; done"});
  order.setup = "while ! [ -e " + path("go") + " ]; do sleep 0.01; done";
  order.ranks[0].ports = {ports[1]};
  order.ranks[1].ports = {ports[2]};
  send(order);
  ASSERT_TRUE(await_phase(0, RankPhase::kGated) && await_phase(1, RankPhase::kGated));
  for (const std::uint16_t port : ports) EXPECT_FALSE(can_bind(port));
  lease(2, Duration::seconds(60));
  write("go", "", 0644);
  ASSERT_TRUE(await_phase(0, RankPhase::kRunning) && await_phase(1, RankPhase::kRunning));
  // The exec closes one descriptor after the other, and that of its own word may be before those of the ports.
  EXPECT_TRUE(until([&] { return can_bind(ports[1]) && can_bind(ports[2]); }));
  EXPECT_FALSE(can_bind(ports[0])) << "the gang's own is held until its ranks have ended";
  write("end", "", 0644);
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded) && await_phase(1, RankPhase::kEnded));
  EXPECT_TRUE(until([&] { return can_bind(ports[0]); }));
}

TEST_F(RankStartOf, ItsOwnPortsAreHeldWhileItsMeshIsSetUp) {
  const auto ports = reserve(1);
  Start order = start_order({"true"});
  order.setup = "touch " + path("up") + "; while ! [ -e " + path("go") + " ]; do sleep 0.01; done";
  order.ranks[0].ports = ports;
  run(order);
  ASSERT_TRUE(await_file("up"));
  EXPECT_FALSE(can_bind(ports[0]));
  write("go", "", 0644);
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded));
  EXPECT_TRUE(until([&] { return can_bind(ports[0]); }));
}

TEST_F(RankStartOf, EveryOneOfManyRanksFindsItsPortFreeForASocketWithoutReuse) {
  constexpr std::uint32_t kRanks = 16;
  const auto ports = reserve(kRanks);
  Start order = start_order(std::vector<std::string>(kRanks, ""));
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    order.ranks[rank].ports = {ports[rank]};
    order.ranks[rank].program = {self(), "as-server", std::to_string(ports[rank])};
  }
  run(order);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    ASSERT_TRUE(await_phase(rank, RankPhase::kEnded)) << rank;
    EXPECT_EQ(reports_[key(rank)].end.value, 0) << rank;
  }
}

TEST_F(RankStartOf, IsBoundToItsCores) {
  const auto usable = usable_cpus();
  const auto last = static_cast<std::uint32_t>(usable.size() - 1);
  Start order = start_order({"grep Cpus_allowed_list /proc/self/status", "grep Cpus_allowed_list /proc/self/status"});
  order.ranks[0].binding = {BindKind::kCore, last, 1, {}};
  run(order);
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded) && await_phase(1, RankPhase::kEnded));
  const RankBinding asked{BindKind::kCore, last, 1, {}};
  const auto meant = bound_cpus(asked, read_host_topology(usable)).value();
  EXPECT_EQ(output(0), "Cpus_allowed_list:\t" + cpu_list(meant) + "\n");
  EXPECT_EQ(output(1), "Cpus_allowed_list:\t" + cpu_list(usable) + "\n");
}

TEST_F(RankStartOf, IsNotExecutedWithoutTheCoresThatItIsToHave) {
  Start order = start_order({"true"});
  order.ranks[0].binding = {BindKind::kCore, 60'000, 2, {}};
  run(order);
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded));
  EXPECT_EQ(reports_[key(0)].end.kind, EndKind::kNotExecuted);
  EXPECT_EQ(reports_[key(0)].end.value, EINVAL);
  EXPECT_EQ(reports_[key(0)].end.detail, "bind to cores 60000-60001: the host has " +
                                             std::to_string(usable_cpus().size()) + " for this job, numbered from 0");
}

TEST_F(RankStartOf, HoldsTheGpusOfItsGangAgainstAnotherJobUntilItHasEnded) {
  send(Reserve{MeshId(0), GangId(0), {Term(1), 1}, 0, {}, {"GPU-a"}});
  ASSERT_TRUE(until([&] { return reserved_.has_value(); }));
  EXPECT_EQ(reserved_->error, "");
  EXPECT_TRUE(reserved_->ports.empty());
  HostLocks other({path("door-locks")}, "other-3c4d");
  const auto held = other.hold("gpu-GPU-a", LockSharing::kJob);
  ASSERT_TRUE(held.ok() && held->has_value());
  EXPECT_EQ((*held)->job, "mine-1a2b");
  EXPECT_EQ((*held)->pid, keeper_->pid());
  run(start_order({"true"}));
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded));
  EXPECT_TRUE(until([&] { return !other.hold("gpu-GPU-a", LockSharing::kJob)->has_value(); }));
  reserved_.reset();
  send(Reserve{MeshId(0), GangId(1), {Term(1), 1}, 1, {}, {"GPU-a"}});
  ASSERT_TRUE(until([&] { return reserved_.has_value(); }));
  EXPECT_EQ(reserved_->error,
            "GPU GPU-a of host v1 is held by job other-3c4d (pid " + std::to_string(::getpid()) + ")");
}

}  // namespace
}  // namespace monarch
