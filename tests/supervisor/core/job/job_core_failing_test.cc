// Hosts whose keeper is gone: told before their ranks' peers miss them, decided upon with the proof that their worker
// has ended.

#include <gtest/gtest.h>

#include <utility>

#include "supervisor/core/job/status.h"
#include "supervisor/launch/local/local_spec.h"
#include "tests/supervisor/core/fixtures.h"
#include "transport/base/exit_code.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::exited;
using fixtures::job_of;
using fixtures::job_that_recovers;

constexpr RankId kFirst{MeshId(0), Rank(0)};
constexpr RankId kSecond{MeshId(0), Rank(1)};
constexpr HostId kV1{0};
constexpr HostId kV2{1};

// One gang on two hosts, and a spare.
JobSpec one_gang() {
  JobSpec spec = job_of(2, 1);
  spec.meshes[0].supervision.restart = {.max = 4};
  spec.meshes[0].supervision.reallocate = {.max = 4};
  spec.supervision = spec.meshes[0].supervision;
  spec.launch = LaunchLocal{.hosts = 3, .spares = 1};
  return spec;
}

void run_with_spare(Driver& driver) {
  driver.run_all();
  driver.join(2);
}

TEST(FailingHost, IsTheCauseAndNotThePeerThatMissedItsRank) {
  Driver driver(one_gang());
  run_with_spare(driver);
  driver.step(WorkerFailing{.host = kV2});
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kFailing);
  ASSERT_EQ(driver.told(EventKind::kHostLost).size(), 1U);
  EXPECT_EQ(driver.told(EventKind::kHostLost)[0],
            "v2: its keeper ended unexpectedly, and what runs there is being killed");
  driver.ended(0, exited(1));
  driver.step(DeadlinePassed{}, Duration::seconds(2));
  EXPECT_TRUE(driver.told(EventKind::kGangFailed).empty()) << "it is decided with the proof";
  driver.step(WorkerEnded{.host = kV2, .how = "killed by SIGKILL"});
  ASSERT_EQ(driver.told(EventKind::kGangFailed).size(), 1U);
  EXPECT_EQ(driver.told(EventKind::kGangFailed)[0],
            "trainer: gang 0: host v2 was lost: its worker ended unexpectedly: killed by SIGKILL [host lost: "
            "replacement 1 of 4 in 1h; then: replacement 2]");
  EXPECT_EQ(driver.told(EventKind::kHostLost).size(), 1U);
  EXPECT_EQ(driver.core.placement().host_of(kSecond), HostId(2));
  EXPECT_TRUE(driver.gang(0).failures.empty()) << "no restart is spent";
}

TEST(FailingHost, IsTheCauseAlsoWhereThePeersEndIsHeardFirst) {
  Driver driver(one_gang());
  run_with_spare(driver);
  driver.ended(0, exited(1));
  driver.step(WorkerFailing{.host = kV2});
  driver.step(WorkerEnded{.host = kV2, .how = "killed by SIGKILL"});
  ASSERT_EQ(driver.told(EventKind::kGangFailed).size(), 1U);
  EXPECT_NE(driver.told(EventKind::kGangFailed)[0].find("host v2 was lost"), std::string::npos)
      << driver.told(EventKind::kGangFailed)[0];
}

TEST(FailingHost, WaitsForNoSurvivorThatTakesItsTime) {
  Driver driver(one_gang());
  run_with_spare(driver);
  driver.step(WorkerFailing{.host = kV2});
  driver.step(WorkerEnded{.host = kV2, .how = "killed by SIGKILL"});
  EXPECT_TRUE(driver.told(EventKind::kGangFailed).empty());
  driver.pass_deadline();
  EXPECT_EQ(driver.told(EventKind::kGangFailed).size(), 1U) << "its other rank has still to end";
}

TEST(FailingHost, IsLaunchedAgainAtOnceWhereNoOtherIsLeft) {
  JobSpec spec = one_gang();
  spec.launch = LaunchLocal{.hosts = 2};
  Driver driver(spec);
  driver.run_all();
  driver.step(WorkerFailing{.host = kV2});
  driver.ended(0, exited(1));
  EXPECT_EQ(driver.core.state().phase, JobPhase::kRunning);
  driver.step(WorkerEnded{.host = kV2, .how = "killed by SIGKILL"});
  EXPECT_EQ(driver.host(1).phase, HostPhase::kLaunching);
  EXPECT_FALSE(driver.host(1).failing);
  EXPECT_EQ(driver.core.state().phase, JobPhase::kRunning);
}

TEST(FailingHost, IsShownAsEnding) {
  Driver driver(one_gang());
  run_with_spare(driver);
  driver.step(WorkerFailing{.host = kV2});
  EXPECT_EQ(status_of(driver.core, "test-0001", driver.now).hosts[1].phase, "ending");
}

TEST(FailingHost, GetsNoLeaseAndNoOrder) {
  Driver driver(one_gang());
  run_with_spare(driver);
  const RankReport report = driver.report_of(kSecond, RankPhase::kRunning);
  ASSERT_TRUE(state_parts::is_granted(driver.core, {kSecond, report.process.generation}));
  driver.step(WorkerFailing{.host = kV2});
  EXPECT_FALSE(state_parts::is_granted(driver.core, {kSecond, report.process.generation}));
  EXPECT_TRUE(driver.core.outstanding(kV2, {report}).empty());
  EXPECT_FALSE(driver.core.outstanding(kV1, {driver.report_of(kFirst, RankPhase::kRunning)}).empty());
}

TEST(FailingHost, ThatFallsSilentIsGivenUpAsOthersAre) {
  Driver driver(one_gang());
  run_with_spare(driver);
  driver.step(WorkerFailing{.host = kV2});
  driver.step(HostSilent{.host = kV2, .silence = Duration::seconds(5), .grants_until = driver.now});
  EXPECT_EQ(driver.host(1).phase, HostPhase::kDestroying);
  EXPECT_FALSE(driver.host(1).failing);
  EXPECT_EQ(driver.told(EventKind::kHostLost).size(), 1U);
  driver.ended(0, exited(1));
  EXPECT_EQ(driver.core.placement().host_of(kSecond), HostId(2));
}

TEST(FailingHost, IsSaidOnceAndNotOfAJobThatEnds) {
  Driver driver(one_gang());
  run_with_spare(driver);
  driver.step(WorkerFailing{.host = kV2});
  driver.step(WorkerFailing{.host = kV2});
  EXPECT_EQ(driver.told(EventKind::kHostLost).size(), 1U);
  Driver ending(job_that_recovers(2, 1, 4));
  ending.run_all();
  ending.ended(0, exited(0));
  ending.ended(1, exited(0));
  ASSERT_TRUE(ending.host(1).shutdown_told);
  ending.step(WorkerFailing{.host = kV2});
  EXPECT_TRUE(ending.told(EventKind::kHostLost).empty());
}

// Its gang would pass for done, and be gone for the job, whatever may restart it.
TEST(RankThatServes, HasFailedWhereItEndsUntoldWithWhateverCode) {
  JobSpec spec = job_that_recovers(2, 1, 1);
  spec.meshes[0].serves = true;
  Driver driver(spec);
  driver.run_all();
  driver.ended(0, exited(0));
  ASSERT_EQ(driver.told(EventKind::kGangFailed).size(), 1U);
  EXPECT_NE(
      driver.told(EventKind::kGangFailed)[0].find("it exited with 0, though nobody had told it to end [restart 1 of 1"),
      std::string::npos)
      << driver.told(EventKind::kGangFailed)[0];
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kRunning);
}

TEST(RankThatServes, SaysThatNoCallReachedIt) {
  JobSpec spec = job_that_recovers(2, 1, 1);
  for (const bool serves : {true, false}) {
    spec.meshes[0].serves = serves;
    Driver driver(spec);
    driver.run_all();
    driver.ended(0, exited(kExitCutOff));
    ASSERT_EQ(driver.told(EventKind::kGangFailed).size(), 1U);
    const std::string words = driver.told(EventKind::kGangFailed)[0];
    EXPECT_NE(words.find("exit code 71"), std::string::npos) << words;
    EXPECT_EQ(words.find("no call reached it any more, as its output says") != std::string::npos, serves) << words;
  }
}

TEST(RankThatServes, IsDoneWhereItWasToldToEnd) {
  JobSpec spec = job_that_recovers(1, 1, 1);
  spec.meshes[0].serves = true;
  Driver driver(spec);
  driver.run_all();
  RankEnd told = exited(0);
  told.after_our_signal = true;
  driver.ended(0, told);
  EXPECT_TRUE(driver.told(EventKind::kGangFailed).empty());
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kDone);
}

}  // namespace
}  // namespace monarch
