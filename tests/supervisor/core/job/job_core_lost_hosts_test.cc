// Hosts that are lost while the job runs: the fence, spares and cold hosts, what comes back, and what is left behind.

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <vector>

#include "supervisor/core/health/fence.h"
#include "supervisor/core/job/status.h"
#include "supervisor/launch/local/local_spec.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::job_that_recovers;
using fixtures::killed;

constexpr RankId kFirst{MeshId(0), Rank(0)};

// Two gangs, each on a host of its own, with spares and cold hosts behind them.
JobSpec job_with(std::uint32_t spares, std::uint32_t pool, std::uint32_t reallocations = 4) {
  JobSpec spec = job_that_recovers(2, 1, 4, reallocations);
  spec.launch = LaunchLocal{.hosts = pool, .spares = spares};
  return spec;
}

void run_with_spares(Driver& driver, std::uint32_t spares) {
  driver.begin();
  for (std::uint32_t host = 0; host < 2 + spares; ++host) driver.join(host);
  driver.give_ports();
  for (std::uint32_t r = 0; r < 2; ++r) driver.report({MeshId(0), Rank(r)}, RankPhase::kRunning);
  ASSERT_EQ(driver.core.state().phase, JobPhase::kRunning);
}

void fall_silent(Driver& driver, std::uint32_t host, Duration grants = Duration::seconds(2)) {
  driver.step(HostSilent{.host = HostId(host), .silence = Duration::seconds(5), .grants_until = driver.now + grants});
}

TEST(LostHosts, AreReplacedByASpareOnceWhatRanThereMayActNoLonger) {
  Driver driver(job_with(1, 3));
  run_with_spares(driver, 1);
  fall_silent(driver, 0);
  EXPECT_EQ(driver.core.placement().host_of(kFirst), HostId(2));
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kWaiting) << "I3: its leases have not ended";
  EXPECT_EQ(driver.core.next_deadline() - driver.now, Duration::milliseconds(1'999));
  EXPECT_EQ(driver.told(EventKind::kGangWaiting).back(),
            "trainer: gang 0 waits 2s at most: until then what ran on v1 may hold a lease, unless it is proven to have "
            "ended");
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kRunning);
  driver.pass_deadline();
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kReserving);
  driver.start_again(0);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kRunning);
  EXPECT_EQ(driver.core.state().reallocations.size(), 1U);
  EXPECT_TRUE(driver.gang(0).failures.empty()) << "no restart in place was spent";
  EXPECT_EQ(driver.told(EventKind::kHostReplaced).back(),
            "v3 takes the place of v1 [host lost: replacement 1 of 4 in 1h; then: replacement 2]");
}

// What a lost host had told of its ranks' steps counts as their ends' would, which nobody will see.
TEST(LostHosts, TakeNothingAlongOfHowFarTheirGangWas) {
  Driver driver(job_with(1, 3));
  run_with_spares(driver, 1);
  const auto reaches = [&driver](std::uint64_t step) {
    driver.step(GangProgressed{
        .mesh = MeshId(0), .gang = GangId(0), .generation = driver.crew(0).generation, .step = step, .at = driver.now});
  };
  const GangStep heard{.mesh = MeshId(0), .gang = GangId(0), .generation = driver.crew(0).generation, .step = 520};
  GangStep older = heard;
  older.generation.counter -= 1;
  older.step = 900;
  driver.step(StepsHeard{.gangs = {heard, older}});
  EXPECT_EQ(driver.gang(0).furthest, std::nullopt) << "it goes on";
  fall_silent(driver, 0);
  driver.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  driver.start_again(0);
  EXPECT_EQ(driver.details(EventKind::kGangStarting).at("furthest"), "520");
  reaches(340);
  EXPECT_EQ(driver.told(EventKind::kGangCaughtUp), std::vector<std::string>{});
  reaches(521);
  EXPECT_EQ(driver.details(EventKind::kGangCaughtUp).at("again"), "181");
}

TEST(LostHosts, AreReplacedAtOnceWhenTheirWorkerIsProvenToHaveEnded) {
  Driver driver(job_with(1, 3));
  run_with_spares(driver, 1);
  fall_silent(driver, 0, Duration::seconds(60));
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kWaiting);
  driver.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kReserving);
}

TEST(LostHosts, GiveTheirSlotToAColdHostWhereNoSpareIsConnected) {
  Driver driver(job_with(0, 3));
  run_with_spares(driver, 0);
  fall_silent(driver, 1);
  EXPECT_EQ(driver.host(2).phase, HostPhase::kLaunching);
  driver.step(WorkerEnded{.host = HostId(1), .how = "killed by SIGKILL"});
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kWaiting);
  driver.join(2);
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kReserving);
}

TEST(LostHosts, AreLaunchedAgainAtOnceWhereTheirWorkerEndedByItself) {
  Driver driver(job_with(0, 2));
  run_with_spares(driver, 0);
  driver.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  EXPECT_EQ(driver.host(0).phase, HostPhase::kLaunching);
  EXPECT_EQ(driver.told(EventKind::kHostReplaced).back(),
            "v1: its worker is launched again [host lost: replacement 1 of 4 in 1h; then: replacement 2]");
  driver.join(0);
  driver.start_again(0);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kRunning);
}

TEST(LostHosts, FailTheJobWithTheHostAsFirstCauseWhereNobodyIsLeft) {
  Driver driver(job_with(0, 2));
  run_with_spares(driver, 0);
  fall_silent(driver, 0);
  driver.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  driver.report({MeshId(0), Rank(1)}, RankPhase::kEnded, fixtures::killed_by_us(SIGTERM));
  driver.end_hosts();
  ASSERT_NE(driver.verdict(), nullptr);
  EXPECT_EQ(driver.verdict()->exit_code, 92);
  EXPECT_EQ(driver.verdict()->cause.host, "v1");
  EXPECT_EQ(driver.verdict()->cause.rule, "host lost: no other host is left: fail");
  EXPECT_TRUE(driver.told(EventKind::kGangFailed).back().starts_with("trainer: gang 0: host v1 was lost: "));
}

TEST(LostHosts, AreWaitedForWhereTheirWorkerEndedTwiceAndNobodyElseIsLeft) {
  Driver driver(job_with(0, 2));
  run_with_spares(driver, 0);
  driver.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  driver.join(0);
  driver.start_again(0);
  driver.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  EXPECT_EQ(driver.core.state().phase, JobPhase::kRunning);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kWaiting);
  EXPECT_EQ(driver.core.state().reallocations.size(), 1U) << "what is not yet there costs nothing";
  const std::string rule =
      "[host lost: no other host is left, one may be launched again in 30s: replacement 2 of 4 in 1h]";
  EXPECT_TRUE(driver.told(EventKind::kGangFailed).back().ends_with(rule)) << driver.told(EventKind::kGangFailed).back();
  EXPECT_EQ(driver.told(EventKind::kGangWaiting).back(), "trainer: gang 0 waits for a host " + rule);
  driver.pass_deadline();
  EXPECT_EQ(driver.host(0).phase, HostPhase::kLaunching);
  EXPECT_EQ(driver.core.state().reallocations.size(), 2U);
  driver.join(0);
  driver.start_again(0);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kRunning);
}

TEST(LostHosts, AreTriedAgainWhereTheirWorkerDoesNotStartUntilTheBudgetIsSpent) {
  Driver driver(job_with(0, 2));
  run_with_spares(driver, 0);
  driver.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  std::vector<Duration> waits;
  for (int attempt = 1; attempt <= 3; ++attempt) {
    ASSERT_EQ(driver.host(0).phase, HostPhase::kLaunching) << attempt;
    driver.step(WorkerLaunchFailed{.host = HostId(0), .failure = {.kind = LaunchFailureKind::kRefused}});
    ASSERT_EQ(driver.core.state().phase, JobPhase::kRunning) << attempt;
    EXPECT_EQ(driver.gang(0).phase, GangPhase::kWaiting);
    driver.step(WorkerEnded{.host = HostId(0), .how = "it never ran"});
    waits.push_back(driver.host(0).cold_at - driver.now);
    driver.step(DeadlinePassed{}, driver.host(0).cold_at - driver.now);
  }
  EXPECT_EQ(waits, (std::vector{Duration::seconds(60), Duration::seconds(120), Duration::seconds(240)}));
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kRunning);
  driver.step(WorkerLaunchFailed{.host = HostId(0), .failure = {.kind = LaunchFailureKind::kRefused}});
  driver.end_hosts();
  ASSERT_NE(driver.verdict(), nullptr);
  EXPECT_EQ(driver.verdict()->exit_code, 92);
  EXPECT_EQ(driver.verdict()->cause.rule, "host lost: reallocate: 4 of 4 in 1h are spent: fail");
}

// Of a gang on two hosts the cause is decided once the other one's rank has ended, and the proof may come before that.
TEST(LostHosts, ThatFellSilentAreNotWaitedForWhetherOrNotTheirEndIsProvenMeanwhile) {
  for (const bool proven : {false, true}) {
    JobSpec spec = job_that_recovers(2, 1, 0, 4);
    spec.meshes[0].gang = {};
    Driver driver(spec);
    driver.run_all();
    fall_silent(driver, 0);
    if (proven) driver.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
    driver.report({MeshId(0), Rank(1)}, RankPhase::kEnded, fixtures::killed_by_us(SIGTERM));
    ASSERT_TRUE(driver.core.state().verdict.has_value()) << proven;
    EXPECT_EQ(driver.core.state().verdict->exit_code, 92);
    EXPECT_EQ(driver.core.state().verdict->cause.rule, "host lost: no other host is left: fail");
  }
}

TEST(LostHosts, AreNotWaitedForBeyondTheBudget) {
  Driver driver(job_with(0, 2, 1));
  run_with_spares(driver, 0);
  driver.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  driver.join(0);
  driver.start_again(0);
  driver.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  ASSERT_TRUE(driver.core.state().verdict.has_value());
  EXPECT_EQ(driver.core.state().verdict->cause.rule, "host lost: reallocate: 1 of 1 in 1h are spent: fail");
}

TEST(LostHosts, ArePassedOverWithTheThirdRankWhereNoOtherWasLeftForTheSecond) {
  JobSpec spec = job_that_recovers(1, 3, 9, 4);
  spec.launch = LaunchLocal{.hosts = 2};
  Driver driver(spec);
  driver.run_all();
  driver.step(OperatorAsked{.wish = OperatorWish::kDrain, .hosts = {HostId(1)}, .who = "test"});
  const auto dies = [&driver](std::uint32_t rank) {
    driver.fail_gang({MeshId(0), Rank(rank)}, killed(SIGBUS));
    while (driver.gang(0).phase == GangPhase::kWaiting && driver.core.placement().host_of(kFirst) == HostId(0)) {
      driver.pass_deadline();
    }
  };
  for (const std::uint32_t rank : {0U, 1U, 0U}) {
    dies(rank);
    driver.start_again(0);
  }
  EXPECT_EQ(driver.told(EventKind::kHostDoubtful).size(), 1U);
  driver.step(OperatorAsked{.wish = OperatorWish::kUndrain, .hosts = {HostId(1)}, .who = "test"});
  dies(2);
  EXPECT_EQ(driver.told(EventKind::kHostQuarantined).size(), 1U);
  EXPECT_EQ(driver.core.placement().host_of(kFirst), HostId(1));
}

TEST(LostHosts, NameSomeOfManyThatAGangWaitsFor) {
  JobSpec spec = job_that_recovers(10, 1, 4, 20);
  spec.meshes[0].gang = {};
  spec.launch = LaunchLocal{.hosts = 20};
  Driver driver(spec);
  driver.run_all();
  for (std::uint32_t r = 0; r < 10; ++r) {
    RankReport stuck = driver.report_of({MeshId(0), Rank(r)}, RankPhase::kWedged);
    const RankChanged change{.host = HostId(r),
                             .report = stuck,
                             .ended_at = driver.now,
                             .uncertainty = {},
                             .grants_until = driver.now + Duration::seconds(30)};
    driver.step(change);
    driver.step(change);
  }
  ASSERT_FALSE(driver.told(EventKind::kGangWaiting).empty());
  const std::string waits = driver.told(EventKind::kGangWaiting).back();
  EXPECT_NE(waits.find("v1, v2, v3, v4, v5, v6, v7, v8 and 2 more may hold a lease"), std::string::npos) << waits;
}

TEST(LostHosts, ThatDoNotEndARankAreFencedForTheLongestLease) {
  Driver driver(job_with(1, 3));
  run_with_spares(driver, 1);
  driver.step(OperatorAsked{.wish = OperatorWish::kRestart, .ranks = {kFirst}, .who = "test"});
  while (driver.host(0).phase == HostPhase::kJoined) driver.pass_deadline();  // it says nothing of the rank's end
  const Instant fence = fence_of(driver.now, driver.core.spec().supervision.orphan_ttl);
  EXPECT_EQ(driver.host(0).fence, fence);
  while (driver.host(0).phase != HostPhase::kLost) driver.pass_deadline();  // nor does its worker's end
  EXPECT_EQ(driver.core.placement().host_of(kFirst), HostId(2));
  while (driver.gang(0).phase == GangPhase::kWaiting) driver.pass_deadline();
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kReserving);
  EXPECT_GE(driver.now, fence) << "I3: the rank there may have held a lease until then";
}

TEST(LostHosts, SpendOneBudgetOfTheWholeJob) {
  Driver driver(job_with(2, 4, 1));
  run_with_spares(driver, 2);
  fall_silent(driver, 0);
  driver.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  driver.start_again(0);
  fall_silent(driver, 1);
  EXPECT_EQ(driver.core.state().verdict->cause.rule, "host lost: reallocate: 1 of 1 in 1h are spent: fail");
  EXPECT_EQ(driver.core.state().verdict->exit_code, 92);
}

TEST(LostHosts, ComeBackLaterAsSpares) {
  Driver driver(job_with(1, 3));
  run_with_spares(driver, 1);
  fall_silent(driver, 0);
  driver.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  driver.start_again(0);
  EXPECT_EQ(driver.host(0).phase, HostPhase::kEnded);
  EXPECT_EQ(driver.host(0).cold_at - driver.now, Duration::seconds(30) - Duration::milliseconds(2));
  driver.pass_deadline();
  EXPECT_EQ(driver.host(0).phase, HostPhase::kLaunching) << "the number of spares is kept up";
}

TEST(LostHosts, AreToldToEndWhenTheyAreHeardAfterTheyWereGivenUp) {
  JobSpec machines = job_with(1, 3);
  machines.launch = LaunchSsh{.hosts = {{.name = "v1"}, {.name = "v2"}, {.name = "v3"}}, .spares = 1};
  Driver driver(machines);
  run_with_spares(driver, 1);
  fall_silent(driver, 0);
  while (driver.host(0).phase == HostPhase::kDestroying) driver.pass_deadline();
  ASSERT_EQ(driver.host(0).phase, HostPhase::kLost);
  const Duration wait = driver.host(0).cold_at - driver.now;
  EXPECT_GE(wait, driver.core.spec().supervision.orphan_ttl) << "what may live there still has its orphan_ttl";
  const std::vector<Action> said = driver.core.outstanding(HostId(0), {});
  EXPECT_EQ(Driver::count<SendShutdown>(said), 1U);
  driver.step(WorkerEnded{.host = HostId(0), .how = "exit code 0"});
  EXPECT_EQ(driver.host(0).phase, HostPhase::kEnded);
}

TEST(LostHosts, AreToldToEndAlsoOnceTheyMayBeLaunchedAgain) {
  JobSpec machines = job_with(0, 4);
  machines.launch = LaunchSsh{.hosts = {{.name = "v1"}, {.name = "v2"}, {.name = "v3"}, {.name = "v4"}}};
  Driver driver(machines);
  run_with_spares(driver, 0);
  fall_silent(driver, 0);
  driver.join(2);
  driver.start_again(0);
  while (driver.host(0).phase != HostPhase::kCold) driver.pass_deadline();
  EXPECT_EQ(Driver::count<SendShutdown>(driver.core.outstanding(HostId(0), {})), 1U) << "it stood still for long";
  driver.step(WorkerEnded{.host = HostId(0), .how = "exit code 0"});
  EXPECT_TRUE(driver.core.outstanding(HostId(0), {}).empty());
  EXPECT_TRUE(driver.core.outstanding(HostId(3), {}).empty()) << "nobody was ever there";
}

TEST(LostHosts, ThatCannotBeDestroyedAreNamedAsLeftBehind) {
  Driver driver(job_with(1, 3));
  run_with_spares(driver, 1);
  fall_silent(driver, 0, Duration::seconds(1));
  while (driver.host(0).phase != HostPhase::kLost) driver.pass_deadline();
  driver.step(StopOrdered{.request = {.how = StopHow::kKill, .who = "test"}});
  driver.report({MeshId(0), Rank(1)}, RankPhase::kEnded, fixtures::killed_by_us(SIGKILL));
  for (std::uint32_t i = 1; i < 3; ++i) driver.step(WorkerEnded{.host = HostId(i), .how = "exit code 0"});
  ASSERT_NE(driver.verdict(), nullptr);
  EXPECT_EQ(driver.verdict()->left_behind, std::vector<std::string>{"v1"});
}

TEST(LostHosts, AreLeftWhenARankThereCannotBeKilled) {
  Driver driver(job_with(1, 3));
  run_with_spares(driver, 1);
  RankReport stuck = driver.report_of(kFirst, RankPhase::kWedged);
  driver.step(RankChanged{.host = HostId(0),
                          .report = stuck,
                          .ended_at = driver.now,
                          .uncertainty = {},
                          .grants_until = driver.now + Duration::seconds(3)});
  EXPECT_EQ(driver.core.placement().host_of(kFirst), HostId(2));
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kWaiting);
  driver.pass_deadline();
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kReserving);
}

TEST(LostHosts, ArePassedOverWhenTwoRanksDiedThereOfNoDoingOfTheirProgram) {
  JobSpec spec = job_that_recovers(1, 2, 4, 4);
  spec.launch = LaunchLocal{.hosts = 2, .spares = 1};
  Driver driver(spec);
  driver.begin();
  driver.join(0);
  driver.join(1);
  driver.give_ports();
  for (std::uint32_t r = 0; r < 2; ++r) driver.report({MeshId(0), Rank(r)}, RankPhase::kRunning);
  driver.fail_gang(kFirst, killed(SIGBUS));
  driver.start_again(0);
  EXPECT_EQ(driver.core.placement().host_of(kFirst), HostId(0));
  driver.fail_gang({MeshId(0), Rank(1)}, killed(SIGBUS));
  EXPECT_EQ(driver.core.placement().host_of(kFirst), HostId(1));
  EXPECT_EQ(driver.told(EventKind::kHostQuarantined).size(), 1U);
}

TEST(LostHosts, ArePassedOverWhenTheyCouldNotStartTwoRanks) {
  JobSpec spec = job_that_recovers(1, 2, 4, 4);
  spec.launch = LaunchLocal{.hosts = 2, .spares = 1};
  Driver driver(spec);
  driver.begin();
  driver.join(0);
  driver.join(1);
  driver.give_ports();
  const RankEnd full{.kind = EndKind::kNotExecuted, .value = ENFILE, .detail = "make its output pipes"};
  driver.fail_gang(kFirst, full);
  EXPECT_EQ(driver.core.state().phase, JobPhase::kStarting);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kReserving) << "it is no fault of the program";
  driver.start_again(0);
  driver.fail_gang({MeshId(0), Rank(1)}, full);
  EXPECT_EQ(driver.core.placement().host_of(kFirst), HostId(1));
  EXPECT_EQ(driver.told(EventKind::kHostQuarantined).size(), 1U);
}

TEST(LostHosts, ThatDoNotEndARankTakeTheirOtherGangsWithThem) {
  JobSpec spec = job_that_recovers(1, 2, 4, 4);
  spec.meshes[0].gang = {.scope = GangScope::kEach};
  spec.launch = LaunchLocal{.hosts = 2, .spares = 1};
  Driver driver(spec);
  driver.begin();
  driver.join(0);
  driver.join(1);
  driver.give_ports();
  for (std::uint32_t r = 0; r < 2; ++r) driver.report({MeshId(0), Rank(r)}, RankPhase::kRunning);
  driver.step(OperatorAsked{.wish = OperatorWish::kRestart, .ranks = {kFirst}, .who = "test"});
  while (driver.host(0).phase == HostPhase::kJoined) driver.pass_deadline();  // it says nothing of the rank's end
  driver.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kReserving) << "it was not done";
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kReserving);
  EXPECT_EQ(driver.core.placement().host_of(kFirst), HostId(1));
}

TEST(LostHosts, MakeLeasesShortOnlyWhileAnotherHostCouldTakeTheirPlace) {
  Driver driver(job_with(1, 3));
  run_with_spares(driver, 1);
  EXPECT_EQ(lease_length(driver.core.facts()), Duration::seconds(6));
  fall_silent(driver, 0);
  EXPECT_EQ(lease_length(driver.core.facts()), Duration::seconds(60));
  EXPECT_EQ(fence_of(driver.now, Duration::seconds(6)) - driver.now, Duration::milliseconds(6'506));
}

TEST(StatusOf, AJobThatRecoversTellsOfRestartsAndOfHostsThatAreNotUsed) {
  Driver driver(job_with(1, 3));
  run_with_spares(driver, 1);
  driver.fail_gang({MeshId(0), Rank(1)}, fixtures::exited(1));
  driver.start_again(1);
  driver.step(OperatorAsked{.wish = OperatorWish::kDrain, .hosts = {HostId(1)}, .who = "alice"});
  fall_silent(driver, 0);
  driver.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  const JobStatus status = status_of(driver.core, "test-0001", driver.now + Duration::seconds(10));
  ASSERT_EQ(status.meshes[0].gangs.size(), 2U);
  EXPECT_EQ(status.meshes[0].gangs[1].restarts, 1U);
  EXPECT_EQ(status.meshes[0].gangs[1].failures, 1U);
  EXPECT_EQ(status.meshes[0].gangs[1].generation, 2U);
  EXPECT_EQ(status.meshes[0].restart.max, 4U);
  EXPECT_EQ(status.hosts[1].standing, "drained");
  EXPECT_EQ(status.hosts[1].standing_because, "drained, asked by alice");
  EXPECT_EQ(status.hosts[0].returns_milliseconds, 20'000);
  EXPECT_EQ(status.hosts[0].role, "none");
  EXPECT_EQ(status.hosts[2].role, "rank") << "it has the place of the first";
  EXPECT_EQ(status.hosts[2].standing, "");
  EXPECT_EQ(status.hosts[2].returns_milliseconds, -1);
}

TEST(Operators, StartAGangAgainWithoutSpendingItsBudget) {
  Driver driver(job_with(0, 2));
  run_with_spares(driver, 0);
  driver.step(OperatorAsked{.wish = OperatorWish::kRestart, .ranks = {kFirst}, .who = "test"});
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kStopping);
  driver.report(kFirst, RankPhase::kEnded, fixtures::killed_by_us(SIGTERM));
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kReserving);
  driver.start_again(0);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kRunning);
  EXPECT_TRUE(driver.gang(0).failures.empty());
}

TEST(Operators, DrainAHostAndUseItAgain) {
  Driver driver(job_with(1, 3));
  run_with_spares(driver, 1);
  driver.step(OperatorAsked{.wish = OperatorWish::kDrain, .ranks = {kFirst}, .hosts = {HostId(0)}, .who = "test"});
  driver.report(kFirst, RankPhase::kEnded, fixtures::killed_by_us(SIGTERM));
  EXPECT_EQ(driver.core.placement().host_of(kFirst), HostId(2));
  EXPECT_EQ(driver.host(0).phase, HostPhase::kDestroying);
  driver.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  driver.start_again(0);
  EXPECT_EQ(driver.host(0).phase, HostPhase::kEnded);
  driver.step(OperatorAsked{.wish = OperatorWish::kUndrain, .hosts = {HostId(0)}, .who = "test"});
  EXPECT_EQ(driver.host(0).phase, HostPhase::kLaunching);
}

TEST(Operators, SeeTheDrainNamedWhereAGangHasToStartAgainAndNobodyElseIsLeft) {
  Driver driver(job_with(0, 2));
  run_with_spares(driver, 0);
  driver.step(OperatorAsked{.wish = OperatorWish::kDrain, .hosts = {HostId(0)}, .who = "alice"});
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kRunning);
  driver.fail_gang(kFirst, fixtures::exited(7));
  ASSERT_TRUE(driver.core.state().verdict.has_value());
  const Verdict& verdict = *driver.core.state().verdict;
  EXPECT_EQ(verdict.exit_code, 7) << "why it had to start again is the cause";
  EXPECT_EQ(verdict.reason, "trainer/0 on v1 (pid 1000): exit code 7; v1 is drained, asked by alice");
  EXPECT_EQ(verdict.cause.rule, "host drained: no other host is left: fail");
}

TEST(Operators, WhoDrainedAHostSeeItsGangWaitForOneThatIsDueToReturn) {
  Driver driver(job_with(1, 3));
  run_with_spares(driver, 1);
  fall_silent(driver, 2);
  driver.step(WorkerEnded{.host = HostId(2), .how = "killed by SIGKILL"});
  driver.step(OperatorAsked{.wish = OperatorWish::kDrain, .hosts = {HostId(0)}, .who = "alice"});
  driver.fail_gang(kFirst, fixtures::exited(7));
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kWaiting);
  EXPECT_NE(driver.told(EventKind::kGangWaiting).back().find("[host drained: no other host is left, one may be"),
            std::string::npos);
  driver.pass_deadline();
  EXPECT_EQ(driver.core.placement().host_of(kFirst), HostId(2));
  driver.join(2);
  driver.start_again(0);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kRunning);
}

TEST(Operators, WhoDrainAHostOfAGangThatTheyHaveStoppedLoseTheJobByThatWhereNobodyElseIsLeft) {
  Driver driver(job_with(0, 2));
  run_with_spares(driver, 0);
  driver.step(OperatorAsked{.wish = OperatorWish::kDrain, .ranks = {kFirst}, .hosts = {HostId(0)}, .who = "alice"});
  driver.report(kFirst, RankPhase::kEnded, fixtures::killed_by_us(SIGTERM));
  ASSERT_TRUE(driver.core.state().verdict.has_value());
  EXPECT_EQ(driver.core.state().verdict->exit_code, 92);
  EXPECT_EQ(driver.core.state().verdict->reason, "host v1 is drained, asked by alice");
}

}  // namespace
}  // namespace monarch
