// Hosts that are left on evidence about them alone, while something of the job is still on its way there.

#include <gtest/gtest.h>

#include <csignal>

#include "supervisor/core/operator_request.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::job_that_recovers;
using fixtures::killed;
using fixtures::killed_by_us;
using fixtures::mesh_of;

constexpr RankId kTrainer{MeshId(0), Rank(0)};
constexpr RankId kOther{MeshId(0), Rank(1)};
constexpr RankId kEvaluator{MeshId(1), Rank(0)};

// Two meshes on one host, and a spare.
JobSpec job_with_a_neighbour() {
  JobSpec spec = job_that_recovers(1, 2, 4, 4);
  MeshSpec evaluator = mesh_of("evaluator", {{"host", 1}, {"gpu", 1}}, 1);
  evaluator.like = MeshId(0);
  evaluator.supervision = spec.meshes[0].supervision;
  spec.meshes.push_back(std::move(evaluator));
  spec.launch = LaunchLocal{.hosts = 2, .spares = 1};
  return spec;
}

// The evaluator waits for ports, and the host is left for what befalls a trainer; the other trainer is still being stopped.
struct Doubtful : Driver {
  Doubtful() : Driver(job_with_a_neighbour()) {
    begin();
    join(0);
    join(1);
    give_ports();
    for (const RankId& id : {kTrainer, kOther, kEvaluator}) report(id, RankPhase::kRunning);
    fail_gang(kEvaluator, killed(SIGBUS));
    EXPECT_EQ(gang(0, 1).phase, GangPhase::kReserving);
    report(kTrainer, RankPhase::kEnded, killed(SIGBUS));
    pass_deadline();
    EXPECT_EQ(told("host.quarantined").size(), 1U);
    EXPECT_TRUE(lives(core.state().meshes[0].ranks[1].stage));
  }
};

TEST(Quarantine, KeepsOutAGangWhosePortsWereAskedForBeforeIt) {
  Doubtful driver;
  const std::size_t started = driver.actions_of<SendStart>().size();
  driver.give_ports();  // they were on their way
  EXPECT_EQ(driver.actions_of<SendStart>().size(), started) << "nothing new starts there";
  driver.report(kOther, RankPhase::kEnded, killed_by_us(SIGKILL));
  EXPECT_EQ(driver.core.placement().host_of(kEvaluator), HostId(1));
  driver.give_ports();
  EXPECT_EQ(driver.gang(0, 1).phase, GangPhase::kStarting);
}

// Found by monarch-sim: it was said to be of use again, and never was.
TEST(Quarantine, IsForgivenAlsoWhereTheWorkerHasEndedMeanwhile) {
  Doubtful driver;
  driver.report(kOther, RankPhase::kEnded, killed_by_us(SIGKILL));
  driver.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"}, Duration::seconds(1));
  const HostState& left = driver.core.state().hosts[0];
  ASSERT_EQ(left.standing, HostStanding::kQuarantined);
  ASSERT_EQ(left.phase, HostPhase::kEnded);
  driver.step(DeadlinePassed{}, Duration::seconds(1'000));
  EXPECT_EQ(left.phase, HostPhase::kEnded) << "for good, until somebody says otherwise";
  const auto asked =
      operator_plan(driver.core, {.wish = OperatorWish::kRetry, .ranks = {kTrainer}, .who = "alice"}, driver.now);
  ASSERT_TRUE(asked.ok()) << asked.error().message;
  driver.step(asked->event);
  EXPECT_EQ(left.standing, HostStanding::kGood);
  EXPECT_EQ(left.phase, HostPhase::kLaunching) << "as the spare that is missing";
}

}  // namespace
}  // namespace monarch
