// Hosts on which all has ended while the job goes on: they take the place of others, and what ran on them is still
// theirs.

#include <gtest/gtest.h>

#include <utility>

#include "supervisor/core/job/status.h"
#include "supervisor/launch/local/local_spec.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::exited;
using fixtures::job_that_recovers;

constexpr RankId kFirst{MeshId(0), Rank(0)};
constexpr RankId kSecond{MeshId(0), Rank(1)};
constexpr HostId kV1{0};
constexpr HostId kV2{1};

// A gang on each of two hosts; nobody knows what lives on a host that was lost.
JobSpec two_gangs() {
  JobSpec spec = job_that_recovers(2, 1, 4, 4);
  spec.launch = LaunchLocal{.hosts = 2};
  return spec;
}

// It may have to be waited for until what ran there can act no longer.
void fall_silent(Driver& driver, HostId host) {
  driver.step(HostSilent{.host = host, .silence = Duration::seconds(5), .grants_until = driver.now});
  driver.step(WorkerEnded{.host = host, .how = "killed by SIGKILL"});
}

// The job waits for v3, a spare that may be launched again in a while.
void lose_while_a_spare_is_due(Driver& driver, HostId host) {
  for (int i = 0; i < 2; ++i) {
    driver.join(2);
    driver.step(WorkerEnded{.host = HostId(2), .how = "killed by SIGKILL"});
  }
  driver.step(HostSilent{.host = host, .silence = Duration::seconds(5), .grants_until = driver.now});
  driver.step(WorkerEnded{.host = host, .how = "killed by SIGKILL"});
}

TEST(DoneHosts, TakeThePlaceOfAHostThatIsLost) {
  Driver driver(two_gangs());
  driver.run_all();
  driver.ended(1, exited(0));
  ASSERT_EQ(driver.gang(1).phase, GangPhase::kDone);
  fall_silent(driver, kV1);
  EXPECT_EQ(driver.core.placement().host_of(kFirst), kV2);
  ASSERT_EQ(driver.told(EventKind::kHostReplaced).size(), 1U);
  EXPECT_EQ(
      driver.told(EventKind::kHostReplaced)[0],
      "v2, where all has ended, takes the place of v1 [host lost: replacement 1 of 4 in 1h; then: replacement 2]");
  driver.start_again(0);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kRunning);
  driver.ended(0, exited(0));
  driver.end_hosts();
  ASSERT_NE(driver.verdict(), nullptr);
  EXPECT_EQ(driver.verdict()->exit_code, 0);
}

TEST(DoneHosts, AreStillWhereTheirRanksRan) {
  Driver driver(two_gangs());
  driver.run_all();
  driver.ended(1, exited(0));
  const RankReport last = driver.report_of(kSecond, RankPhase::kEnded, exited(0));
  fall_silent(driver, kV1);
  ASSERT_EQ(driver.core.placement().host_of(kSecond), kV1) << "a slot has a host, and a host one slot";
  EXPECT_EQ(place_of(driver.core.facts(), kSecond), kV2);
  EXPECT_TRUE(judge(driver.core.facts(), kV2, last).counts())
      << "or its worker would keep what it has to tell for ever";
  EXPECT_FALSE(judge(driver.core.facts(), kV1, last).counts());
  const JobStatus status = status_of(driver.core, "test-0001", driver.now);
  EXPECT_EQ(status.meshes[0].ranks[0].host, "v2");
  EXPECT_EQ(status.meshes[0].ranks[1].host, "v2");
}

TEST(DoneHosts, AreWaitedFor) {
  JobSpec spec = two_gangs();
  spec.launch = LaunchLocal{.hosts = 3, .spares = 1};
  Driver driver(spec);
  driver.run_all();
  lose_while_a_spare_is_due(driver, kV1);
  ASSERT_EQ(driver.gang(0).phase, GangPhase::kWaiting);
  RankReport end = driver.report_of(kSecond, RankPhase::kEnded, exited(0));
  end.output_complete = false;
  const auto tell = [&] {
    driver.step(RankChanged{.host = kV2, .report = end, .ended_at = driver.now, .uncertainty = Duration::zero()});
  };
  tell();
  EXPECT_EQ(driver.core.placement().host_of(kFirst), kV1) << "what it wrote last is not here yet";
  end.output_complete = true;
  tell();
  EXPECT_EQ(driver.core.placement().host_of(kFirst), kV2);
}

TEST(DoneHosts, ComeAfterSpares) {
  JobSpec spec = two_gangs();
  spec.launch = LaunchLocal{.hosts = 3, .spares = 1};
  Driver driver(spec);
  driver.run_all();
  driver.join(2);
  driver.ended(1, exited(0));
  fall_silent(driver, kV1);
  EXPECT_EQ(driver.core.placement().host_of(kFirst), HostId(2));
}

TEST(DoneHosts, ComeBeforeAColdOne) {
  JobSpec spec = two_gangs();
  spec.launch = LaunchLocal{.hosts = 3};
  Driver driver(spec);
  driver.run_all();
  driver.ended(1, exited(0));
  fall_silent(driver, kV1);
  EXPECT_EQ(driver.core.placement().host_of(kFirst), kV2);
}

TEST(DoneHosts, AreTakenWhileAnyGangRunsThere) {
  JobSpec spec = job_that_recovers(2, 2, 4, 4);
  spec.meshes[0].gang = {.scope = GangScope::kEach};
  spec.launch = LaunchLocal{.hosts = 3, .spares = 1};
  Driver driver(spec);
  driver.run_all();
  driver.ended(0, exited(0));
  driver.ended(2, exited(0));
  lose_while_a_spare_is_due(driver, kV1);
  EXPECT_EQ(driver.core.placement().host_of(kSecond), kV1);
  driver.ended(3, exited(0));
  EXPECT_EQ(driver.core.placement().host_of(kSecond), kV2);
}

TEST(DoneHosts, TakeInAGangThatIsParked) {
  JobSpec spec = job_that_recovers(3, 1, 4);
  spec.meshes[0].supervision.shrink = ShrinkPolicy{.along = "host", .min = 1, .regrow = true};
  spec.supervision = spec.meshes[0].supervision;
  spec.launch = LaunchLocal{.hosts = 3};
  Driver driver(spec);
  driver.run_all();
  driver.step(HostSilent{.host = kV1, .silence = Duration::seconds(5), .grants_until = driver.now});
  driver.pass_deadline();
  ASSERT_EQ(driver.gang(0).phase, GangPhase::kParked);
  driver.ended(1, exited(0));
  EXPECT_EQ(driver.core.placement().host_of(kFirst), kV2);
  EXPECT_EQ(driver.told(EventKind::kGangReturning).size(), 1U);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kReserving);
}

TEST(DoneHosts, TakeTheSlotOfOneThatDoesNotStartWhileOthersWaitForIt) {
  JobSpec spec = job_that_recovers(4, 1, 4, 4);
  spec.launch = LaunchLocal{.hosts = 4};
  Driver driver(spec);
  driver.begin();
  driver.join(2);
  driver.give_ports();
  driver.report({MeshId(0), Rank(2)}, RankPhase::kRunning);
  driver.join(1);
  driver.join(3);
  driver.step(WorkerLaunchFailed{.host = kV1, .failure = {.kind = LaunchFailureKind::kTimeout}});
  Reserved held{.mesh = MeshId(0), .gang = GangId(1), .generation = driver.crew(1).generation};
  held.ports = {29'500};
  driver.step(PortsReserved{.host = kV2, .reserved = held});
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kReserving) << "nothing begins before it is known whether all can";
  driver.ended(2, exited(0));
  EXPECT_EQ(driver.core.placement().host_of(kFirst), HostId(2));
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kReserving);
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kStarting);
}

TEST(DoneHosts, EndWhereNothingNewMayStart) {
  Driver driver(two_gangs());
  driver.run_all();
  driver.step(OperatorAsked{.wish = OperatorWish::kDrain, .hosts = {kV2}, .who = "alice"});
  EXPECT_EQ(driver.host(1).phase, HostPhase::kJoined);
  driver.ended(1, exited(0));
  EXPECT_EQ(driver.host(1).phase, HostPhase::kDestroying);
}

}  // namespace
}  // namespace monarch
