#include "worker/errand/host_facts.h"

#include "tests/worker/keeper/made_up_host.h"

namespace monarch {
namespace {

class HostFiles : public MadeUpHost {
 protected:
  HostFactsRoots roots() const { return {.proc = root_ + "/proc", .sys = root_ + "/sys", .etc = root_ + "/etc"}; }
  void in_session() const { file("/proc/self/cgroup", "0::/user.slice/user-1000.slice/session-3.scope\n"); }
};

TEST_F(HostFiles, TellWhetherALogoutEndsAWorker) {
  in_session();
  EXPECT_FALSE(kills_at_logout("alice", roots())) << "the default";
  file("/etc/systemd/logind.conf", "[Login]\n#KillUserProcesses=no\nKillUserProcesses=yes\n");
  EXPECT_TRUE(kills_at_logout("alice", roots()));
  EXPECT_FALSE(kills_at_logout("root", roots())) << "exempt unless told otherwise";
  file("/etc/systemd/logind.conf.d/a.conf", "KillExcludeUsers=root alice\n");
  EXPECT_FALSE(kills_at_logout("alice", roots()));
  file("/etc/systemd/logind.conf.d/b.conf", "KillExcludeUsers=bob\n");
  EXPECT_TRUE(kills_at_logout("alice", roots())) << "the last one counts";
  file("/etc/systemd/logind.conf.d/c.conf", "KillOnlyUsers = carol\n");
  EXPECT_FALSE(kills_at_logout("alice", roots())) << "not among those that are named";
  EXPECT_TRUE(kills_at_logout("carol", roots()));
  file("/proc/self/cgroup", "0::/system.slice/ssh.service\n");
  EXPECT_FALSE(kills_at_logout("carol", roots())) << "without pam_systemd there is no session to end";
}

TEST_F(HostFiles, TellOfRdmaPorts) {
  EXPECT_TRUE(rdma_ports(roots()).empty());
  file("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  file("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
  file("/sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
  file("/sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
  const auto ports = rdma_ports(roots());
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_EQ(ports[0].name, "mlx5_0:1");
  EXPECT_EQ(ports[0].state, "ACTIVE");
  EXPECT_EQ(ports[0].rate, "400 Gb/sec (4X NDR)");
  EXPECT_EQ(ports[1].state, "DOWN");
}

TEST_F(HostFiles, TellWhereAProgramIsAsARankWouldFindIt) {
  file("/bin/here", "");
  file("/bin/plain", "");
  std::filesystem::permissions(root_ + "/bin/here", std::filesystem::perms::owner_all);
  std::filesystem::permissions(root_ + "/bin/plain", std::filesystem::perms::owner_read);
  const Environment login = {{"PATH", "/nowhere:" + root_ + "/bin"}};
  EXPECT_EQ(find_program({.program = "here"}, login).found, root_ + "/bin/here");
  EXPECT_EQ(find_program({.program = "bin/here", .workdir = root_}, {}).found, root_ + "/bin/here");
  EXPECT_NE(find_program({.program = "gone"}, login).error.find("not in PATH"), std::string::npos);
  EXPECT_NE(find_program({.program = "here", .path = "/usr/nowhere"}, login).error, "");
  EXPECT_NE(find_program({.program = root_ + "/bin/gone"}, login).error.find("No such file"), std::string::npos);
}

TEST(HostFacts, OfThisMachineAreWhatTheKernelSays) {
  const HostFacts facts = host_facts({.patience = Duration::seconds(10)}, {{"HOME", "/tmp"}, {"USER", "me"}});
  EXPECT_FALSE(facts.kernel.empty());
  EXPECT_GE(facts.files.hard, facts.files.soft);
  EXPECT_GT(facts.inventory.cpus, 0U);
  EXPECT_EQ(facts.version, MONARCH_VERSION);
  EXPECT_EQ(facts.places.size(), 4U);
}

}  // namespace
}  // namespace monarch
