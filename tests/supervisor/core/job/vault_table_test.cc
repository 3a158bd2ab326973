#include "supervisor/core/job/vault_table.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/launch/local/local_spec.h"
#include "tests/supervisor/core/fixtures.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

using fixtures::Driver;

// Gangs of so many hosts each, with two ranks on each host.
JobSpec job_with(std::uint32_t gangs, std::uint32_t gang_hosts, std::uint32_t spares, std::uint32_t peer) {
  JobSpec spec;
  spec.name = "test";
  spec.directory = "/srv/job";
  MeshSpec mesh = fixtures::mesh_of("trainer", {{"replica", gangs}, {"host", gang_hosts}, {"gpu", 2}}, 1);
  mesh.gang = {.scope = GangScope::kDimension, .along = 0};
  mesh.supervision.restart = {.max = 4};
  mesh.supervision.reallocate = {.max = 4};
  spec.supervision = mesh.supervision;
  spec.meshes.push_back(std::move(mesh));
  spec.launch = LaunchLocal{.spares = spares};
  spec.checkpoints = {.peer = peer, .memory = 1U << 30U};
  return spec;
}

// All hosts are connected and run; vaults listen at 7000 and the host's number.
class Job : public Driver {
 public:
  explicit Job(const JobSpec& spec) : Driver(spec), ports(core.hosts().size()) {
    run_all();
    for (std::uint32_t i = spec.hosts_needed(); i < core.hosts().size(); ++i) join(i);
    for (std::uint32_t i = 0; i < ports.size(); ++i) ports[i] = static_cast<std::uint16_t>(7000 + i);
  }

  VaultView view() const {
    return {.spec = core.spec(),
            .state = core.state(),
            .placement = core.placement(),
            .pool = core.hosts(),
            .ports = ports};
  }
  VaultTable table(std::uint32_t host) const {
    return vault_table_of(common_vault_table(view()), own_vault_gangs(view())[host], HostId(host));
  }
  // "2 3": where copies go from this host, of that gang.
  std::string targets(std::uint32_t gang, std::uint32_t host, std::uint32_t mesh = 0) const {
    std::vector<std::string> hosts;
    for (const HostId target : vault_targets(view(), MeshId(mesh), GangId(gang), HostId(host))) {
      hosts.push_back(text(target.value()));
    }
    return monarch::join(hosts, " ");
  }
  // How often each host is a target.
  std::map<std::uint32_t, std::uint32_t> load() const {
    std::map<std::uint32_t, std::uint32_t> kept;
    for (const std::vector<VaultGang>& gangs : own_vault_gangs(view())) {
      for (const VaultGang& gang : gangs) {
        for (const HostId target : gang.targets) ++kept[target.value()];
      }
    }
    return kept;
  }
  void commit_alone(const RankId& id, std::uint64_t step) {
    const GangId gang = core.spec().meshes[id.mesh.value()].gang_of(id.rank);
    this->step(CheckpointCommitted{.host = core.placement().host_of(id),
                                   .process = {id, this->crew(gang.value()).generation},
                                   .commit = {.number = step, .step = step, .what = "vault"}});
  }
  void commit(std::uint32_t gang, std::uint64_t step) {
    for (const RankId& id : core.placement().ranks_of(MeshId(0), GangId(gang))) commit_alone(id, step);
  }
  void end_gang(std::uint32_t gang) {
    for (const RankId& id : core.placement().ranks_of(MeshId(0), GangId(gang))) {
      report(id, RankPhase::kEnded, fixtures::exited(0));
    }
  }

  std::vector<std::uint16_t> ports;
};

std::vector<std::uint32_t> gangs_in(const VaultTable& table) {
  std::vector<std::uint32_t> gangs;
  for (const VaultGang& gang : table.gangs) gangs.push_back(gang.gang.value());
  return gangs;
}

TEST(VaultTable, SendsCopiesToTheNextHostsThatHoldNoRankOfTheGang) {
  const Job job(job_with(3, 1, 0, 1));
  EXPECT_EQ(job.targets(0, 0), "1");
  EXPECT_EQ(job.targets(2, 2), "0");
  EXPECT_EQ(job.targets(0, 1), "") << "the gang has no rank there";
  const Job wide(job_with(1, 3, 2, 2));
  for (std::uint32_t host = 0; host < 3; ++host) {
    EXPECT_EQ(wide.targets(0, host), host % 2 == 0 ? "3 4" : "4 3");
  }
}

TEST(VaultTable, GivesEachHostAsMuchToKeepAsIsKeptForIt) {
  for (const auto& [gangs, gang_hosts] : {std::pair(8U, 1U), std::pair(2U, 4U), std::pair(3U, 2U), std::pair(4U, 4U)}) {
    for (std::uint32_t peer = 1; peer <= 3; ++peer) {
      const Job job(job_with(gangs, gang_hosts, 0, peer));
      const auto load = job.load();
      EXPECT_EQ(load.size(), gangs * gang_hosts);
      for (const auto& [host, kept] : load) {
        EXPECT_EQ(kept, peer) << gangs << " gangs of " << gang_hosts << ", host " << host;
      }
    }
  }
}

TEST(VaultTable, NamesMeshesGangsAndTheVaultsOfOthers) {
  Job job(job_with(2, 2, 1, 2));
  job.commit(1, 10);
  const VaultTable table = job.table(2);
  EXPECT_EQ(table.version, 0U);
  EXPECT_EQ(table.meshes, (std::vector<VaultMesh>{{.name = "trainer", .gang_size = 4}}));
  ASSERT_EQ(table.gangs.size(), 2U);
  VaultGang kept{.mesh = MeshId(0), .gang = GangId(0), .generation = 1};
  kept.sources = {{HostId(0), Rank(0), 2}};
  EXPECT_EQ(table.gangs[0], kept);
  EXPECT_EQ(
      table.gangs[1],
      (VaultGang{
          .mesh = MeshId(0), .gang = GangId(1), .generation = 1, .committed = 10, .targets = {HostId(4), HostId(0)}}));
  ASSERT_EQ(table.peers.size(), 4U);
  EXPECT_EQ(table.peers[2],
            (PeerAddress{.host = HostId(3), .name = "v4", .address = "127.0.1.4", .port = 7003, .public_key = "key"}));
  EXPECT_EQ(table.peers[3].host, HostId(4)) << "a spare";
  EXPECT_EQ(table, job.table(2)) << "nothing but the state goes in";
}

TEST(VaultTable, NamesTheStepFromWhichAGangGoesOn) {
  Job job(job_with(2, 1, 0, 1));
  job.commit(0, 10);
  job.fail_gang({MeshId(0), Rank(0)}, fixtures::exited(1));
  job.start_again(0);
  const VaultTable table = job.table(1);
  EXPECT_EQ(table.gangs[0].generation, 2U);
  EXPECT_EQ(table.gangs[0].committed, 10U);
  EXPECT_EQ(table.gangs[0].resumed, 10U);
  job.commit(0, 12);
  EXPECT_EQ(job.table(1).gangs[0].committed, 12U);
  EXPECT_EQ(job.table(1).gangs[0].resumed, 10U);
}

TEST(VaultTable, NamesTheStepBelowWhichAGangCommitsNone) {
  Job job(job_with(1, 1, 1, 1));
  const RankId first{MeshId(0), Rank(0)};
  const RankId second{MeshId(0), Rank(1)};
  job.commit(0, 10);
  job.commit_alone(first, 20);
  job.commit_alone(first, 30);
  EXPECT_EQ(job.table(0).gangs[0].passed, std::nullopt);
  job.commit_alone(second, 40);
  EXPECT_EQ(job.table(0).gangs[0].committed, 10U);
  EXPECT_EQ(job.table(0).gangs[0].passed, 30U);
  job.fail_gang(first, fixtures::exited(1));
  job.start_again(0);
  EXPECT_EQ(job.table(0).gangs[0].passed, std::nullopt) << "of the present generation";
}

TEST(VaultTable, LeavesOutHostsWithoutAVault) {
  Job job(job_with(4, 1, 0, 2));
  job.ports[1] = 0;
  EXPECT_EQ(job.targets(0, 0), "2 3");
  EXPECT_EQ(job.table(0).peers.size(), 2U);
  job.ports[2] = job.ports[3] = 0;
  EXPECT_EQ(job.targets(0, 0), "");
}

TEST(VaultTable, FollowsAGangToASpare) {
  Job job(job_with(3, 1, 1, 1));
  job.commit(0, 10);
  EXPECT_EQ(job.targets(2, 2), "3");
  job.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  EXPECT_EQ(gangs_in(job.table(1)), (std::vector<std::uint32_t>{0, 1, 2})) << "its copies are needed";
  while (job.core.placement().host_of({MeshId(0), Rank(0)}) == HostId(0)) job.pass_deadline();
  EXPECT_EQ(job.targets(0, 0), "");
  EXPECT_EQ(job.targets(0, 3), "1");
  EXPECT_EQ(job.targets(1, 1), "2");
  for (const PeerAddress& peer : job.table(1).peers) EXPECT_NE(peer.host, HostId(0));
}

TEST(VaultTable, PrefersHostsThatAreWell) {
  Job job(job_with(4, 1, 0, 2));
  job.step(HostDoubted{.host = HostId(1), .silence = Duration::seconds(3)});
  EXPECT_EQ(job.targets(0, 0), "2 3");
  EXPECT_EQ(job.table(0).peers.size(), 3U) << "it may have a copy that somebody needs";
  job.step(OperatorAsked{.wish = OperatorWish::kDrain, .hosts = {HostId(2)}, .who = "alice"});
  EXPECT_EQ(job.targets(0, 0), "3 1") << "better than none";
  job.step(HostDoubted{.host = HostId(1), .heard_again = true});
  EXPECT_EQ(job.targets(0, 0), "1 3");
}

// So none keeps anything in the name of a rank that who offers it does not have.
TEST(VaultTable, NamesWhoSendsToEachHostAndOfWhichRanks) {
  const Job job(job_with(2, 2, 2, 1));
  std::size_t sent = 0;
  for (std::uint32_t host = 0; host < job.ports.size(); ++host) {
    for (const VaultGang& gang : job.table(host).gangs) {
      for (const VaultSource& source : gang.sources) {
        const auto targets = vault_targets(job.view(), gang.mesh, gang.gang, source.host);
        EXPECT_EQ(std::count(targets.begin(), targets.end(), HostId(host)), 1);
        const auto ranks = job.core.placement().ranks_of(gang.mesh, gang.gang, source.host);
        ASSERT_EQ(ranks.size(), source.count);
        EXPECT_EQ(ranks.front().rank, source.first);
        sent += source.count;
      }
    }
  }
  EXPECT_EQ(sent, job.core.spec().meshes[0].size()) << "one copy of each";
}

TEST(VaultTable, LeavesOutGangsThatAreDone) {
  Job job(job_with(3, 1, 0, 1));
  job.end_gang(1);
  EXPECT_EQ(gangs_in(job.table(0)), (std::vector<std::uint32_t>{0, 2}));
  const auto own = own_vault_gangs(job.view());
  EXPECT_TRUE(std::all_of(own[1].begin(), own[1].end(), [](const VaultGang& gang) { return gang.targets.empty(); }));
  EXPECT_EQ(job.targets(0, 0), "1") << "its host still keeps what others save";
}

TEST(VaultTable, KeepsParkedGangsThatMayComeBack) {
  for (const bool regrow : {true, false}) {
    JobSpec spec = job_with(3, 1, 0, 1);
    spec.meshes[0].supervision.shrink = ShrinkPolicy{.along = "replica", .min = 1, .regrow = regrow};
    spec.meshes[0].supervision.reallocate = {.max = 0};
    Job job(spec);
    job.step(OperatorAsked{.wish = OperatorWish::kDrain, .hosts = {HostId(1)}, .who = "alice"});
    job.fail_gang({MeshId(0), Rank(2)}, fixtures::exited(1));
    ASSERT_EQ(job.gang(1).phase, GangPhase::kParked);
    EXPECT_EQ(gangs_in(job.table(0)),
              regrow ? (std::vector<std::uint32_t>{0, 1, 2}) : (std::vector<std::uint32_t>{0, 2}));
  }
}

TEST(VaultTable, LeavesOutSidecarsAndNumbersMeshesAsTheSpecDoes) {
  JobSpec spec = job_with(2, 1, 0, 1);
  MeshSpec log = fixtures::mesh_of("log", {{"slot", 1}}, 1);
  log.sidecar = true;
  log.like = MeshId(1);
  spec.meshes.insert(spec.meshes.begin(), std::move(log));
  const Job job(spec);
  const VaultTable table = job.table(0);
  ASSERT_EQ(table.meshes.size(), 2U);
  EXPECT_EQ(table.meshes[0].name, "log");
  EXPECT_EQ(gangs_in(table), (std::vector<std::uint32_t>{0, 1}));
  for (const VaultGang& gang : table.gangs) EXPECT_EQ(gang.mesh, MeshId(1));
}

TEST(VaultTable, OfAStateThatHasMovedOnHasTheTargetsThatItCanHave) {
  Job job(job_with(3, 1, 0, 1));
  const VaultTable before = common_vault_table(job.view());
  job.end_gang(0);
  const VaultTable table = vault_table_of(before, own_vault_gangs(job.view())[1], HostId(1));
  EXPECT_EQ(gangs_in(table), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(table.gangs[1].targets, std::vector<HostId>{HostId(2)});
  const VaultTable early = vault_table_of(common_vault_table(job.view()), {before.gangs[0]}, HostId(0));
  EXPECT_EQ(gangs_in(early), (std::vector<std::uint32_t>{1, 2}));
}

TEST(VaultPorts, AreTheHighestThatNoRankIsGivenByNumber) {
  JobSpec spec = fixtures::job_that_recovers(2, 1, 4, 4);
  EXPECT_EQ(vault_ports(spec), PortSpan{});
  spec.network.ports = {.first = 7000, .last = 7009};
  EXPECT_EQ(vault_ports(spec), (PortSpan{7000, 7009}));
  spec.meshes[0].ports = {{"http", 7009}, {"admin", 7004}, {"any", {}}};
  EXPECT_EQ(vault_ports(spec), (PortSpan{7005, 7008}));
}

}  // namespace
}  // namespace monarch
