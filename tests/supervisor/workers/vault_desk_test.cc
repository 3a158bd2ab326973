#include "supervisor/workers/vault_desk.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

JobSpec job_of_gangs(std::uint32_t hosts) {
  JobSpec spec = fixtures::job_that_recovers(hosts, 1, 4, 4);
  spec.meshes[0].per_host_dims = 1;
  spec.checkpoints = {.peer = 1, .memory = 1U << 30U};
  return spec;
}

// A job of a gang on each of three hosts; the network is what the test says.
class VaultDeskTest : public ::testing::Test {
 protected:
  VaultDeskTest() : job_(job_of_gangs(3)) {
    job_.run_all();
    start();
  }

  void start(std::optional<Instant> returned = {}) {
    desk_ = std::make_unique<VaultDesk>(
        job_.core, VaultDeskOptions{.send =
                                        [this](HostId host, const VaultTable& table) {
                                          if (!reachable_) return false;
                                          sent_.emplace_back(host, table);
                                          return true;
                                        },
                                    .is_durable = [this](std::uint64_t ticket) { return ticket <= durable_; },
                                    .returned = returned});
  }

  // A beat of a vault that goes by this table. What was sent for it, if anything was.
  std::optional<VaultTable> hear(std::uint32_t host, std::uint64_t table = 0, std::uint16_t port = 0) {
    sent_.clear();
    if (port == 0) port = static_cast<std::uint16_t>(7000 + host);
    desk_->hear(HostId(host), {.port = port, .table = table, .used = 0}, now_);
    EXPECT_LE(sent_.size(), 1U);
    if (sent_.empty()) return std::nullopt;
    EXPECT_EQ(sent_[0].first, HostId(host));
    return sent_[0].second;
  }
  // Every host has said where its vault listens, and goes by what it should.
  void settle() {
    for (int round = 0; round < 2; ++round) {
      for (std::uint32_t host = 0; host < 3; ++host) {
        if (const auto table = hear(host, tables_[host])) tables_[host] = table->version;
      }
      pass(heartbeat());
    }
  }
  void step(const CoreEvent& event) {
    job_.step(event);
    desk_->changed(++tickets_);
    if (writes_) durable_ = tickets_;
  }
  void commit(std::uint32_t gang, std::uint64_t step_number) {
    step(CheckpointCommitted{.host = HostId(gang),
                             .process = {{MeshId(0), Rank(gang)}, job_.crew(gang).generation},
                             .commit = {.number = step_number, .step = step_number, .what = "vault"}});
  }
  void pass(Duration time) { now_ = now_ + time; }
  Duration heartbeat() const { return job_.core.spec().supervision.heartbeat; }

  fixtures::Driver job_;
  Instant now_ = Instant::since_boot(Duration::seconds(100));
  bool reachable_ = true;
  bool writes_ = true;  // the journal
  std::uint64_t tickets_ = 0;
  std::uint64_t durable_ = 0;
  std::vector<std::pair<HostId, VaultTable>> sent_;
  std::vector<std::uint64_t> tables_ = std::vector<std::uint64_t>(3);
  std::unique_ptr<VaultDesk> desk_;
};

using Vaults = VaultDeskTest;

TEST_F(Vaults, TellsAHostItsTableUntilItGoesByIt) {
  const auto first = hear(0);
  ASSERT_TRUE(first);
  EXPECT_NE(first->version, 0U);
  EXPECT_EQ(first->gangs.size(), 3U);
  EXPECT_TRUE(first->peers.empty()) << "no other port is known";
  EXPECT_FALSE(hear(0)) << "it may be on its way";
  pass(heartbeat());
  EXPECT_EQ(hear(0), first) << "it was lost";
  pass(heartbeat());
  EXPECT_FALSE(hear(0, first->version));
}

TEST_F(Vaults, TellsOfAVaultAsSoonAsItIsKnown) {
  (void)hear(0);
  pass(Duration::milliseconds(1));
  const auto second = hear(1);
  ASSERT_TRUE(second);
  ASSERT_EQ(second->peers.size(), 1U);
  EXPECT_EQ(second->peers[0].host, HostId(0));
  EXPECT_EQ(second->peers[0].port, 7000U);
  EXPECT_EQ(second->gangs[1].targets, std::vector<HostId>{HostId(0)});
  const auto first = hear(0);
  ASSERT_TRUE(first) << "what it was sent a moment ago is another table";
  ASSERT_EQ(first->peers.size(), 1U);
  EXPECT_EQ(first->gangs[0].targets, std::vector<HostId>{HostId(1)});
}

TEST_F(Vaults, TellsAHostNoMoreOftenThanOnceAHeartbeatInTheLongRun) {
  settle();
  pass(Duration::seconds(10));
  int told = 0;
  for (std::uint64_t i = 1; i <= 100; ++i) {
    commit(1, i);
    pass(VaultDesk::kFloor);
    if (const auto table = hear(0, tables_[0])) {
      tables_[0] = table->version;
      ++told;
    }
  }
  EXPECT_EQ(told,
            100 * VaultDesk::kFloor.count_milliseconds() / heartbeat().count_milliseconds() + VaultDesk::kAtOnce - 1);
}

TEST_F(Vaults, LooksAtTheCoreAgainAfterAWhile) {
  settle();
  EXPECT_FALSE(hear(0, tables_[0]));
  commit(1, 10);
  const auto table = hear(0, tables_[0]);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->gangs[1].committed, 10U);
  tables_[0] = table->version;
  commit(1, 11);
  EXPECT_FALSE(hear(0, tables_[0]));
  pass(VaultDesk::kFloor);
  EXPECT_TRUE(hear(0, tables_[0]));
}

TEST_F(Vaults, TellsNothingThatIsNotDurable) {
  settle();
  writes_ = false;
  commit(1, 10);
  EXPECT_FALSE(hear(0, tables_[0])) << "J1";
  durable_ = 1;
  commit(1, 11);
  pass(VaultDesk::kFloor);
  const auto table = hear(0, tables_[0]);
  ASSERT_TRUE(table) << "however many records follow it";
  EXPECT_EQ(table->gangs[1].committed, 10U);
  EXPECT_FALSE(hear(0, table->version));
  durable_ = 2;
  const auto later = hear(0, table->version);
  ASSERT_TRUE(later);
  EXPECT_EQ(later->gangs[1].committed, 11U);
}

TEST_F(Vaults, SaysAgainWhatCouldNotBeSent) {
  reachable_ = false;
  EXPECT_FALSE(hear(0));
  reachable_ = true;
  EXPECT_TRUE(hear(0));
}

TEST_F(Vaults, ForgetsTheVaultOfAHostThatIsLostAndOfAWorkerThatIsAnother) {
  settle();
  step(WorkerEnded{.host = HostId(2), .how = "killed by SIGKILL"});
  const auto without = hear(0, tables_[0]);
  ASSERT_TRUE(without);
  EXPECT_EQ(without->peers.size(), 1U);
  EXPECT_FALSE(hear(2)) << "it is not connected";
  while (job_.host(2).phase != HostPhase::kLaunching) job_.pass_deadline();
  step(WorkerLaunched{.host = HostId(2), .worker = {.reply = {.public_key = "other", .keeper_pid = 200}}});
  step(WorkerJoined{.host = HostId(2), .incarnation = 77});
  pass(heartbeat() * VaultDesk::kAtOnce);
  const auto joined = hear(0, without->version);
  ASSERT_TRUE(joined) << "its gang starts again";
  EXPECT_EQ(joined->gangs[2].generation, 2U);
  EXPECT_EQ(joined->peers.size(), 1U) << "its vault is not known";
  ASSERT_TRUE(hear(2, tables_[2], 8000));
  const auto with = hear(0, joined->version);
  ASSERT_TRUE(with);
  ASSERT_EQ(with->peers.size(), 2U);
  EXPECT_EQ(with->peers[1].port, 8000U);
  EXPECT_EQ(with->peers[1].public_key, "other");
}

TEST_F(Vaults, GivesCopiesToOthersWhereAVaultStaysAway) {
  settle();
  const auto gone = [this] { desk_->hear(HostId(1), {}, now_); };
  const auto targets = [this] {
    const auto table = hear(0, 1);
    return table ? table->gangs[0].targets : std::vector<HostId>{};
  };
  gone();
  pass(ServantPorts::kGoneAfter - Duration::milliseconds(1));
  gone();
  EXPECT_EQ(targets(), std::vector<HostId>{HostId(1)}) << "it may be started again";
  pass(heartbeat());
  gone();
  pass(heartbeat());
  EXPECT_EQ(targets(), std::vector<HostId>{HostId(2)});
  (void)hear(1, 0, 7100);
  pass(heartbeat());
  EXPECT_EQ(targets(), std::vector<HostId>{HostId(1)});
}

TEST_F(Vaults, TellsOfAVaultThatListensElsewhere) {
  settle();
  (void)hear(1, tables_[1], 9000);
  pass(VaultDesk::kFloor);
  const auto table = hear(0, tables_[0]);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->peers[0].port, 9000U);
}

TEST_F(Vaults, AfterAReturnGivesTheSameVersionsOnceAllHostsWereHeard) {
  settle();
  start(now_);
  EXPECT_FALSE(hear(0, tables_[0]));
  EXPECT_FALSE(hear(1, 5)) << "the third host's port is not known";
  EXPECT_FALSE(hear(2, tables_[2])) << "it goes by what it should";
  EXPECT_FALSE(hear(0, tables_[0]));
  EXPECT_TRUE(hear(1, 5));
}

TEST_F(Vaults, AfterAReturnWaitsForAHostWithoutAVaultOnlySoLong) {
  settle();
  start(now_);
  EXPECT_FALSE(hear(0, tables_[0]));
  EXPECT_FALSE(hear(1, tables_[1]));
  desk_->hear(HostId(2), {.port = 0, .table = 0, .used = 0}, now_);  // it calls, and has no vault yet
  pass(ServantPorts::kHeardWithin);
  const auto table = hear(0, tables_[0]);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->peers.size(), 1U);
}

TEST_F(Vaults, AfterAReturnWaitsLongerForAHostThatHasNotCalled) {
  settle();
  start(now_);
  EXPECT_FALSE(hear(0, tables_[0]));
  EXPECT_FALSE(hear(1, tables_[1]));
  pass(ServantPorts::kHeardWithin);
  EXPECT_FALSE(hear(0, tables_[0]));
  pass(ServantPorts::kCalledWithin - ServantPorts::kHeardWithin);
  const auto table = hear(0, tables_[0]);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->peers.size(), 1U);
}

TEST_F(Vaults, AfterAReturnDoesNotWaitForAHostThatIsLost) {
  settle();
  start(now_);
  EXPECT_FALSE(hear(0, 5));
  EXPECT_FALSE(hear(1, 5));
  step(WorkerEnded{.host = HostId(2), .how = "killed by SIGKILL"});
  EXPECT_TRUE(hear(0, 5));
}

}  // namespace
}  // namespace monarch
