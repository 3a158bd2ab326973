// Slots whose host is out: each gang that waits there has its own policy, and who still lives there is not left behind.

#include <gtest/gtest.h>

#include <csignal>
#include <utility>

#include "supervisor/launch/local/local_spec.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::exited;
using fixtures::job_that_recovers;

constexpr RankId kFirst{MeshId(0), Rank(0)};
constexpr RankId kSidecar{MeshId(1), Rank(0)};

// Each rank a gang of its own, that may be parked while `min` of them go on.
JobSpec job_that_shrinks(std::uint32_t hosts, std::uint32_t per_host, std::uint32_t min) {
  JobSpec spec = job_that_recovers(hosts, per_host, 4);
  spec.meshes[0].gang = {.scope = GangScope::kEach};
  spec.meshes[0].supervision.shrink = ShrinkPolicy{.along = "gpu", .min = min, .regrow = false};
  spec.launch = LaunchLocal{.hosts = hosts};
  return spec;
}

// A second mesh on the same hosts.
MeshSpec& add_neighbour(JobSpec& spec) {
  MeshSpec other = spec.meshes[0];
  other.name = "other";
  other.like = MeshId(0);
  other.supervision.shrink.reset();
  spec.meshes.push_back(std::move(other));
  return spec.meshes.back();
}

void lose(Driver& driver, std::uint32_t host) {
  driver.step(WorkerEnded{.host = HostId(host), .how = "killed by SIGKILL"});
}

TEST(Refill, ParksNoMoreGangsOfOneHostThanMayBeMissing) {
  for (const auto& [hosts, min] : {std::pair(1U, 1U), std::pair(2U, 3U)}) {
    Driver driver(job_that_shrinks(hosts, 2, min));
    driver.run_all();
    lose(driver, 0);
    driver.end_hosts();
    ASSERT_NE(driver.verdict(), nullptr) << hosts;
    EXPECT_EQ(driver.verdict()->outcome, Outcome::kFailed);
    EXPECT_EQ(driver.verdict()->exit_code, 92);
    EXPECT_EQ(driver.verdict()->cause.host, "v1");
  }
}

TEST(Refill, ParksAsManyGangsOfOneHostAsMayBeMissing) {
  Driver driver(job_that_shrinks(2, 2, 2));
  driver.run_all();
  lose(driver, 0);
  EXPECT_EQ(driver.core.state().phase, JobPhase::kRunning);
  for (const std::uint32_t g : {0U, 1U}) EXPECT_EQ(driver.gang(g).phase, GangPhase::kParked);
}

TEST(Refill, ParksNoGangOfAMeshThatDoesNotShrink) {
  JobSpec spec = job_that_shrinks(2, 1, 1);
  add_neighbour(spec);
  Driver driver(spec);
  driver.run_all();
  driver.fail_gang({MeshId(1), Rank(0)}, exited(1));
  ASSERT_EQ(driver.gang(0, 1).phase, GangPhase::kReserving);
  lose(driver, 0);
  EXPECT_EQ(driver.gang(0, 0).phase, GangPhase::kStopped);
  EXPECT_EQ(driver.gang(0, 1).phase, GangPhase::kStopped);
  ASSERT_TRUE(driver.core.state().verdict.has_value());
  EXPECT_EQ(driver.core.state().verdict->exit_code, 92);
}

TEST(Refill, TakesAMeshWithoutARunningGangForNoSuccess) {
  const JobSpec spec = job_that_shrinks(1, 2, 1);
  Driver driver(spec);
  driver.run_all();
  JobState state = driver.core.state();
  for (GangState& gang : state_parts::gangs(state, MeshId(0))) gang.phase = GangPhase::kParked;
  for (RankState& rank : state_parts::ranks(state, MeshId(0))) rank = RankState{};
  for (std::uint32_t g = 0; g < spec.meshes[0].gangs(); ++g) {
    Crew& crew = state_parts::crew(state, MeshId(0), GangId(g));
    crew.phase = CrewPhase::kWaiting;
    crew.members.assign(crew.members.size(), CrewMember{});
  }
  JobCore core(spec, pool_of(spec), {.job_id = "test-0001"});
  core.restore(state);
  (void)core.step(DeadlinePassed{}, driver.now);
  ASSERT_TRUE(core.state().verdict.has_value());
  EXPECT_EQ(core.state().verdict->outcome, Outcome::kFailed);
  EXPECT_EQ(core.state().verdict->exit_code, 92);
  EXPECT_EQ(core.state().verdict->reason, "no gang of trainer is left: all of them are parked");
}

TEST(Refill, StopsNoGangThatGoesOnWhereNothingNewMayStart) {
  JobSpec spec = job_that_recovers(1, 2, 4, 4);
  spec.meshes[0].gang = {.scope = GangScope::kEach};
  spec.launch = LaunchLocal{.hosts = 2, .spares = 1};
  Driver driver(spec);
  driver.run_all();
  driver.join(1);
  driver.step(OperatorAsked{.wish = OperatorWish::kDrain, .hosts = {HostId(0)}, .who = "alice"});
  driver.fail_gang(kFirst, exited(1));
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kWaiting);
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kRunning) << "it was not to be stopped";
  ASSERT_EQ(driver.told(EventKind::kGangWaiting).size(), 1U);
  EXPECT_NE(driver.told(EventKind::kGangWaiting)[0].find(
                "`monarch drain --now v1` stops it [host drained: replacement 1 of 4"),
            std::string::npos)
      << driver.told(EventKind::kGangWaiting)[0];
  driver.ended(1, exited(0));
  EXPECT_EQ(driver.core.placement().host_of(kFirst), HostId(1));
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kReserving);
}

TEST(Refill, MovesOnceTheLastNeighbourHasEndedForGood) {
  JobSpec spec = job_that_recovers(1, 1, 4, 4);
  spec.launch = LaunchLocal{.hosts = 2, .spares = 1};
  MeshSpec& sidecar = add_neighbour(spec);
  sidecar.sidecar = true;
  sidecar.supervision.reallocate = {.max = 0};
  Driver driver(spec);
  driver.begin();
  for (const std::uint32_t host : {0U, 1U}) driver.join(host);
  driver.start_again(0, 1);
  driver.start_again(0);
  ASSERT_EQ(driver.core.state().phase, JobPhase::kRunning);
  driver.report(kFirst, RankPhase::kWedged);
  driver.report(kSidecar, RankPhase::kEnded, fixtures::killed_by_us(SIGKILL));
  EXPECT_EQ(driver.gang(0, 1).phase, GangPhase::kFailed);
  EXPECT_EQ(driver.core.placement().host_of(kFirst), HostId(1));
}

}  // namespace
}  // namespace monarch
