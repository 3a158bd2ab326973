// A gang that fails and is started again in place: when, how often, and what its neighbours see of it.

#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::exited;
using fixtures::job_of;
using fixtures::job_that_recovers;
using fixtures::killed;

constexpr RankId kFirst{MeshId(0), Rank(0)};

Instant next_start(const Driver& driver) { return driver.core.next_deadline(); }

GangProgressed progressed(const Driver& driver, std::uint64_t step) {
  return {
      .mesh = MeshId(0), .gang = GangId(0), .generation = driver.crew(0).generation, .step = step, .at = driver.now};
}

TEST(JobCoreRecovery, StartsAFailedGangAgainAtOnceAndLeavesTheOtherAlone) {
  Driver driver(job_that_recovers(2, 2, 2));
  driver.run_all();
  const Generation first = driver.crew(0).generation;
  driver.fail_gang(kFirst, killed(SIGSEGV));
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kReserving);
  EXPECT_GT(driver.crew(0).generation, first);
  EXPECT_FALSE(state_parts::is_granted(driver.core, {kFirst, first}));
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kRunning);
  driver.start_again(0);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kRunning);
  EXPECT_EQ(driver.core.state().phase, JobPhase::kRunning);
  const auto failed = driver.told(EventKind::kGangFailed);
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0],
            "trainer/0 on v1 (pid 1000): killed by SIGSEGV [restart 1 of 2 in 10m, at once; then: restart 2]");
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(driver.variable(rank, "MONARCH_RESTART_CAUSE"), "trainer/0 on v1 (pid 1000): killed by SIGSEGV");
  }
  EXPECT_EQ(driver.variable(2, "MONARCH_RESTART_CAUSE"), "unset");
  for (const Action& action : driver.actions_of<SendStop>()) {
    EXPECT_EQ(std::get<SendStop>(action).host, HostId(0)) << "a rank of another gang was stopped";
  }
  EXPECT_NE(driver.told(EventKind::kGangRunning).back().find("is running again"), std::string::npos);
}

TEST(JobCoreRecovery, WaitsForEveryRankOfTheGenerationBefore) {
  Driver driver(job_that_recovers(1, 2, 2));
  driver.run_all();
  driver.ended(0, exited(1));
  driver.pass_deadline();  // the first cause is decided
  EXPECT_EQ(driver.told(EventKind::kGangFailed).size(), 1U);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kFailing);
  driver.ended(1, fixtures::killed_by_us(SIGKILL));
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kReserving);
}

TEST(JobCoreRecovery, WaitsWithTheFirstCauseForWhomeverWasEndingBefore) {
  Driver driver(job_that_recovers(1, 2, 2));
  driver.run_all();
  const Instant began = driver.now;
  driver.ended(0, exited(1));
  const auto second = [&](RankPhase phase, RankEnd end) {
    RankReport report = driver.report_of({MeshId(0), Rank(1)}, phase, std::move(end));
    report.ending = phase == RankPhase::kRunning;
    driver.step(RankChanged{.host = HostId(0), .report = report, .ended_at = began, .uncertainty = Duration::zero()});
  };
  second(RankPhase::kRunning, {});
  for (int i = 0; i < 20; ++i) driver.pass_deadline();
  EXPECT_TRUE(driver.told(EventKind::kGangFailed).empty());
  second(RankPhase::kEnded, killed(SIGBUS));
  EXPECT_EQ(driver.told(EventKind::kGangFailed).at(0).substr(0, 93),
            "trainer/1 on v1 (pid 1001): killed by SIGBUS (or first: trainer/0 on v1, exit code 1; they en");
}

TEST(JobCoreRecovery, MissesNoTimeThatComesWhileSomethingElseIsDecided) {
  Driver driver(job_that_recovers(2, 2, 3));
  driver.run_all();
  driver.fail_gang(kFirst, exited(1));
  driver.start_again(0);
  driver.fail_gang(kFirst, exited(1));
  ASSERT_EQ(driver.gang(0).phase, GangPhase::kWaiting);
  driver.now = driver.gang(0).not_before;  // the timer of it is late
  driver.report({MeshId(0), Rank(2)}, RankPhase::kRunning);
  driver.now = driver.now + Duration::milliseconds(1);
  driver.report({MeshId(0), Rank(3)}, RankPhase::kRunning);
  EXPECT_LE(driver.core.next_deadline(), driver.now);
  driver.pass_deadline();
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kReserving);
}

TEST(JobCoreRecovery, WaitsForTheBackOffBeforeTheSecondRestart) {
  Driver driver(job_that_recovers(1, 1, 3));
  driver.run_all();
  driver.fail_gang(kFirst, exited(1));
  driver.start_again(0);
  driver.fail_gang(kFirst, exited(1));
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kWaiting);
  const Duration wait = next_start(driver) - driver.now;
  EXPECT_GE(wait, Duration::milliseconds(370));
  EXPECT_LE(wait, Duration::milliseconds(625));
  driver.pass_deadline();
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kReserving);
}

TEST(JobCoreRecovery, FailsWithTheLastFirstCauseWhenTheBudgetIsSpent) {
  Driver driver(job_that_recovers(1, 1, 1));
  driver.run_all();
  driver.fail_gang(kFirst, exited(7));
  driver.start_again(0);
  driver.fail_gang(kFirst, exited(9));
  driver.end_hosts();
  ASSERT_NE(driver.verdict(), nullptr);
  EXPECT_EQ(driver.verdict()->exit_code, 9);
  EXPECT_EQ(driver.verdict()->cause.rule, "restart: 1 of 1 in 10m are spent: fail");
  EXPECT_EQ(driver.verdict()->cause.generation, 2U);
}

TEST(JobCoreRecovery, ForgetsFailuresThatAreOlderThanTheWindow) {
  JobSpec spec = job_that_recovers(1, 1, 1);
  spec.meshes[0].supervision.restart.window = Duration::seconds(10);
  Driver driver(spec);
  driver.run_all();
  driver.fail_gang(kFirst, exited(1), 5);  // a step: being ready is no progress
  driver.start_again(0);
  driver.now = driver.now + Duration::seconds(10);
  driver.fail_gang(kFirst, exited(1), 6);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kReserving);
}

TEST(JobCoreRecovery, TakesAMinuteOfBeingReadyForProgressWhereNoStepsAreNamed) {
  Driver driver(job_that_recovers(1, 1, 1));
  driver.run_all();
  driver.fail_gang(kFirst, exited(1));
  driver.start_again(0);
  EXPECT_EQ(next_start(driver) - driver.now, Duration::seconds(60));
  driver.pass_deadline();
  EXPECT_TRUE(driver.gang(0).failures.empty());
  driver.fail_gang(kFirst, exited(1));
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kReserving);
}

TEST(JobCoreRecovery, TakesNoTimeOfBeingReadyForProgressWhereAnyRankNamesSteps) {
  Driver driver(job_that_recovers(1, 2, 3));
  driver.run_all();
  const auto ends = [&driver](std::uint32_t rank, RankEnd end, std::optional<std::uint64_t> step) {
    const RankId id{MeshId(0), Rank(rank)};
    driver.step(RankChanged{.host = HostId(0),
                            .report = driver.report_of(id, RankPhase::kEnded, std::move(end)),
                            .ended_at = driver.now,
                            .uncertainty = {},
                            .step = step});
  };
  ends(1, exited(1), {});
  ends(0, fixtures::killed_by_us(SIGTERM), 30);
  driver.start_again(0);
  EXPECT_EQ(next_start(driver), Instant::never()) << "the rank that names steps is not the one that dies";
  EXPECT_EQ(driver.gang(0).failures.size(), 1U);
}

TEST(JobCoreRecovery, TakesNoTimeForProgressOnceTheGangHasFailed) {
  JobSpec spec = job_that_recovers(1, 2, 3);
  spec.meshes[0].stop.after_failure = Duration::seconds(30);
  Driver driver(spec);
  driver.run_all();
  driver.fail_gang(kFirst, exited(1));
  driver.start_again(0);
  driver.now = driver.now + Duration::seconds(35);
  driver.ended(0, exited(1));  // the other takes its time
  const Instant over = driver.now + Duration::seconds(26);
  while (driver.core.next_deadline() < over) driver.pass_deadline();
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kFailing);
  EXPECT_EQ(driver.gang(0).failures.size(), 2U) << "what is being stopped makes no progress";
}

TEST(JobCoreRecovery, TakesAFurtherStepForProgressAndFailsAtTheThirdCrashAtTheSame) {
  Driver driver(job_that_recovers(1, 1, 10));
  driver.run_all();
  for (int crash = 1; crash <= 2; ++crash) {
    driver.fail_gang(kFirst, killed(SIGFPE), 17);
    if (driver.gang(0).phase == GangPhase::kWaiting) driver.pass_deadline();
    driver.start_again(0);
  }
  EXPECT_EQ(next_start(driver), Instant::never());  // time alone is no progress here
  Driver further = driver;
  driver.fail_gang(kFirst, killed(SIGFPE), 17);
  EXPECT_EQ(driver.core.state().verdict->cause.rule, "crash 3 in a row at step 17: fail");

  further.step(progressed(further, 17));
  EXPECT_FALSE(further.gang(0).failures.empty()) << "it has been there before";
  further.step(progressed(further, 18));
  EXPECT_TRUE(further.gang(0).failures.empty());
  further.fail_gang(kFirst, killed(SIGFPE), 17);
  EXPECT_EQ(further.gang(0).phase, GangPhase::kReserving);
}

TEST(JobCoreRecovery, NamesAllHostsOnWhichAGangStarts) {
  Driver driver(fixtures::job_of(12, 1));
  driver.run_all();
  EXPECT_EQ(driver.details(EventKind::kGangStarting).at("hosts"), "v[1-12]");
}

// What an operator asks of a failure: when it was made good, and what was done twice for that.
TEST(JobCoreRecovery, TellsOnceThatAGangIsPastWhereItWas) {
  Driver driver(job_that_recovers(1, 1, 10));
  driver.run_all();
  driver.step(progressed(driver, 0));
  EXPECT_EQ(driver.told(EventKind::kGangCaughtUp), std::vector<std::string>{}) << "it has not failed";
  driver.fail_gang(kFirst, killed(SIGSEGV), 412);
  driver.start_again(0);
  EXPECT_EQ(driver.details(EventKind::kGangStarting).at("furthest"), "412");
  driver.step(progressed(driver, 401));
  driver.step(progressed(driver, 412));
  EXPECT_EQ(driver.told(EventKind::kGangCaughtUp), std::vector<std::string>{});
  driver.now = driver.gang(0).failed_at + Duration::milliseconds(3'200);
  driver.step(progressed(driver, 413));
  driver.step(progressed(driver, 414));
  EXPECT_EQ(
      driver.told(EventKind::kGangCaughtUp),
      std::vector<std::string>{"trainer: gang 0 is past step 412, where it was, 3.2s after it had ended; 12 steps "
                               "were done again"});
  const auto details = driver.details(EventKind::kGangCaughtUp);
  EXPECT_EQ(details.at("after_ms"), "3200");
  EXPECT_EQ(details.at("again"), "12");
  EXPECT_EQ(details.at("step"), "413");
}

TEST(JobCoreRecovery, TellsProgramsWhatItTellsPeopleOfAFailure) {
  Driver driver(job_that_recovers(1, 1, 2));
  driver.run_all();
  driver.fail_gang(kFirst, killed(SIGSEGV));
  auto details = driver.details(EventKind::kGangFailed);
  EXPECT_EQ(details, (std::map<std::string, std::string>{{"gang", "0"},
                                                         {"cause", "rank"},
                                                         {"end", "killed by SIGSEGV"},
                                                         {"remedy", "restart"},
                                                         {"number", "1"},
                                                         {"of", "2"},
                                                         {"wait_ms", "0"},
                                                         {"rule", "restart 1 of 2 in 10m, at once; then: restart 2"}}));
  driver.start_again(0);
  EXPECT_EQ(driver.details(EventKind::kGangRunning).count("launch_ms"), 1U);
  driver.fail_gang(kFirst, exited(1));
  driver.pass_deadline();
  driver.start_again(0);
  driver.fail_gang(kFirst, exited(1));
  details = driver.details(EventKind::kGangFailed);
  EXPECT_EQ(details.at("remedy"), "fail");
  EXPECT_EQ(details.count("number"), 0U);
}

TEST(JobCoreRecovery, RetriesADeathByLackOfMemoryOnce) {
  Driver driver(job_that_recovers(1, 1, 10));
  driver.run_all();
  RankEnd starved = killed(SIGKILL);
  starved.out_of_memory = true;
  driver.fail_gang(kFirst, starved);
  driver.start_again(0);
  driver.fail_gang(kFirst, starved);
  EXPECT_EQ(driver.core.state().verdict->cause.rule, "out of memory again: retried once: fail");
}

TEST(JobCoreRecovery, ObeysAStopWhileItWaits) {
  Driver driver(job_that_recovers(2, 1, 3));
  driver.run_all();
  driver.fail_gang(kFirst, exited(1));
  driver.start_again(0);
  driver.fail_gang(kFirst, exited(1));
  driver.step(StopOrdered{.request = {.who = "test"}});
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kStopped);
  driver.report({MeshId(0), Rank(1)}, RankPhase::kEnded, fixtures::killed_by_us(SIGTERM));
  driver.end_hosts();
  ASSERT_NE(driver.verdict(), nullptr);
  EXPECT_EQ(driver.verdict()->exit_code, 143);
}

TEST(JobCoreRecovery, ObeysAStopWhileTheFailedGangIsBeingStopped) {
  Driver driver(job_that_recovers(1, 2, 3));
  driver.run_all();
  driver.ended(0, exited(1));
  driver.pass_deadline();
  driver.step(StopOrdered{.request = {.who = "test"}});
  driver.ended(1, fixtures::killed_by_us(SIGKILL));
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kFailed);
  driver.end_hosts();
  ASSERT_NE(driver.verdict(), nullptr);
  EXPECT_EQ(driver.verdict()->exit_code, 143);
}

TEST(JobCoreRecovery, StartsAGangAgainThatFailsWhileItStarts) {
  Driver driver(job_that_recovers(2, 1, 2));
  driver.begin();
  driver.join(0);
  driver.join(1);
  driver.give_ports();
  driver.fail_gang(kFirst, exited(1));
  EXPECT_EQ(driver.core.state().phase, JobPhase::kStarting);
  driver.report({MeshId(0), Rank(1)}, RankPhase::kRunning);
  driver.start_again(0);
  EXPECT_EQ(driver.core.state().phase, JobPhase::kRunning);
}

TEST(JobCoreRecovery, StartsASidecarAgainAndNeverFailsTheJobByIt) {
  JobSpec spec = job_that_recovers(1, 1, 1);
  spec.meshes[0].sidecar = true;
  spec.meshes.push_back(fixtures::mesh_of("main", {{"host", 1}}, 0));
  Driver driver(spec);
  driver.begin();
  driver.join(0);
  driver.join(1);
  driver.start_again(0);
  driver.start_again(0, 1);
  ASSERT_EQ(driver.core.state().phase, JobPhase::kRunning);
  driver.fail_gang(kFirst, exited(1));
  driver.start_again(0);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kRunning);
  driver.fail_gang(kFirst, exited(1));
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kFailed);
  EXPECT_EQ(driver.core.state().phase, JobPhase::kRunning);
}

JobSpec job_with_sidecar(std::uint32_t ranks = 1) {
  JobSpec spec = job_that_recovers(1, ranks, 1);
  spec.meshes[0].sidecar = true;
  spec.meshes[0].ready.kind = ReadyKind::kNotify;
  spec.meshes.push_back(fixtures::mesh_of("main", {{"host", 1}}, 0));
  return spec;
}

void say_ready(Driver& driver, RankId id) {
  RankReport report = driver.report_of(id, RankPhase::kRunning);
  report.ready = true;
  driver.step(
      RankChanged{.host = driver.core.placement().host_of(id), .report = report, .ended_at = {}, .uncertainty = {}});
}

TEST(JobCoreRecovery, TakesASidecarThatWasReadyOnceForUpWhenItIsDone) {
  Driver driver(job_with_sidecar());
  driver.begin();
  driver.join(0);
  driver.start_again(0);
  say_ready(driver, kFirst);
  driver.fail_gang(kFirst, exited(1));
  driver.start_again(0);
  driver.ended(0, exited(0));
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kDone);
  driver.join(1);
  driver.start_again(0, 1);
  EXPECT_EQ(driver.core.state().phase, JobPhase::kRunning) << "nobody waits for it any longer";
}

// Found by monarch-sim, seed 20040 of the theme commits: all waited until start_timeout.
TEST(JobCoreRecovery, TakesASidecarThatWasReadyOnceForUpWhenARankOfItEndsUnready) {
  Driver driver(job_with_sidecar(2));
  driver.begin();
  driver.join(0);
  driver.start_again(0);
  say_ready(driver, kFirst);
  say_ready(driver, {MeshId(0), Rank(1)});
  driver.fail_gang(kFirst, exited(1));
  driver.start_again(0);
  driver.join(1);
  say_ready(driver, kFirst);
  EXPECT_EQ(driver.gang(0, 1).phase, GangPhase::kWaiting);
  driver.report({MeshId(0), Rank(1)}, RankPhase::kEnded, exited(0));
  driver.start_again(0, 1);
  EXPECT_EQ(driver.core.state().phase, JobPhase::kRunning) << "its other rank lives, and it will never be ready again";
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kRunning);
}

TEST(JobCoreRecovery, GoesOnWithoutASidecarThatHasNotWhatItNeedsTheSecondTime) {
  Driver driver(job_with_sidecar());
  driver.begin();
  driver.join(0);
  driver.join(1);
  driver.start_again(0);
  say_ready(driver, kFirst);
  driver.start_again(0, 1);
  ASSERT_EQ(driver.core.state().phase, JobPhase::kRunning);
  driver.fail_gang(kFirst, exited(1));
  ASSERT_EQ(driver.gang(0).phase, GangPhase::kReserving);
  driver.step(PortsReserved{
      .host = HostId(0),
      .reserved = {
          .mesh = MeshId(0), .gang = GangId(0), .generation = driver.crew(0).generation, .error = "no port is free"}});
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kFailed);
  EXPECT_FALSE(driver.core.state().verdict);
}

TEST(JobCoreRecovery, IgnoresWhatIsSaidOfAnEarlierGeneration) {
  Driver driver(job_that_recovers(1, 1, 2));
  driver.run_all();
  const RankReport late = driver.report_of(kFirst, RankPhase::kEnded, exited(1));
  driver.fail_gang(kFirst, exited(1));
  driver.start_again(0);
  EXPECT_TRUE(judge(driver.core.facts(), HostId(0), late).of == ReportOf::kSuperseded);
  driver.step(RankChanged{.host = HostId(0), .report = late, .ended_at = driver.now, .uncertainty = {}});
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kRunning);
}

TEST(JobCoreRecovery, ReplaysToTheSameState) {
  Driver driver(job_that_recovers(2, 1, 3));
  driver.run_all();
  driver.fail_gang(kFirst, exited(1));
  driver.start_again(0);
  driver.fail_gang(kFirst, exited(1), 3);
  driver.pass_deadline();
  Driver again(driver.core.spec());
  for (const auto& [event, now] : driver.history) again.core.step(event, now);
  EXPECT_EQ(again.core.next_deadline(), driver.core.next_deadline());
  EXPECT_EQ(again.crew(0).generation, driver.crew(0).generation);
  EXPECT_EQ(again.gang(0).not_before, driver.gang(0).not_before);
}

}  // namespace
}  // namespace monarch
