// A supervisor that comes back: what lives goes on, what was lost on the way is said again, and nothing is done twice.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "supervisor/launch/local/local_spec.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::exited;
using fixtures::job_of;
using fixtures::killed_by_us;

constexpr RankId kFirst{MeshId(0), Rank(0)};

std::vector<Action> come_back(Driver& job, Duration away = Duration::seconds(1)) {
  return job.step(SupervisorReturned{.term = Term(2)}, away);
}

std::vector<Action> hear(Driver& job, std::uint32_t host) {
  return job.step(WorkerJoined{.host = HostId(host), .incarnation = host + 1});
}

std::vector<EventKind> events_in(const std::vector<Action>& actions) {
  std::vector<EventKind> kinds;
  for (const Action& action : actions) {
    if (const auto* emitted = std::get_if<EmitEvent>(&action)) kinds.push_back(emitted->event.kind);
  }
  return kinds;
}

TEST(JobCoreStoodStill, GivesWhoStartsTheTimeThatNobodyHad) {
  Driver job(job_of(2, 1));
  job.begin();
  job.join(0);
  const Instant due = job.core.next_deadline();
  const Instant start_by = job.core.state().start_deadline;
  const auto actions = job.step(StoodStill{Duration::seconds(500)}, Duration::seconds(500));
  EXPECT_EQ(events_in(actions), std::vector<EventKind>{EventKind::kSupervisorStoodStill});
  EXPECT_EQ(actions.size(), 1U);
  EXPECT_EQ(job.core.state().start_deadline, start_by + Duration::seconds(500));
  EXPECT_EQ(job.core.next_deadline(), due + Duration::seconds(500));
  EXPECT_EQ(
      job.told(EventKind::kSupervisorStoodStill).at(0),
      "the supervisor did not run for 8m 20s: it was stopped, or its machine slept or had too much to do; nobody is "
      "blamed for that time");
}

TEST(JobCoreStoodStill, IsToldOfWhereAStartTakesTooLong) {
  JobSpec spec = job_of(2, 1);
  spec.start_timeout = Duration::seconds(60);
  Driver job(spec);
  job.begin();
  job.join(0);
  job.step(StoodStill{Duration::milliseconds(4'000)}, Duration::milliseconds(4'000));
  job.step(StoodStill{Duration::milliseconds(3'300)}, Duration::milliseconds(3'300));
  while (!job.core.state().verdict) job.pass_deadline();
  const std::string& why = job.core.state().verdict->reason;
  const std::string begins =
      "not started within start_timeout (1m) (this machine was late by 7.3s meanwhile, which does not count): ";
  EXPECT_EQ(why.substr(0, begins.size()), begins) << why;
}

TEST(JobCoreStoodStill, IsNotToldOfWhereItWasBeforeTheTimeThatIsOver) {
  Driver job(job_of(2, 1));
  job.begin();
  job.step(StoodStill{Duration::seconds(500)}, Duration::seconds(500));
  job.now = job.now + Duration::seconds(30);
  job.step(WorkerLaunched{.host = HostId(0), .worker = {.reply = {.public_key = "key", .keeper_pid = 100}}});
  while (job.told(EventKind::kHostFailed).empty()) job.pass_deadline();
  EXPECT_EQ(job.told(EventKind::kHostFailed)[0].find("late"), std::string::npos) << job.told(EventKind::kHostFailed)[0];
}

TEST(JobCoreStoodStill, LeavesTheTimesOfTheJobsOwnAsTheyAre) {
  JobSpec spec = job_of(1, 1);
  spec.lifetime.max = Duration::seconds(3'600);
  Driver job(spec);
  job.run_all();
  const Instant ends = job.core.state().lifetime_deadline;
  job.step(StoodStill{Duration::seconds(500)}, Duration::seconds(500));
  EXPECT_EQ(job.core.state().lifetime_deadline, ends);
  EXPECT_EQ(job.core.state().phase, JobPhase::kRunning);
}

TEST(JobCoreReturn, TakesWhatRunsOverAndOrdersNothing) {
  Driver job(job_of(2, 1));
  job.run_all();
  const Generation before = job.crew(0).generation;
  const auto actions = come_back(job);
  EXPECT_EQ(events_in(actions), std::vector<EventKind>{EventKind::kSupervisorReturned});
  EXPECT_EQ(actions.size(), 1U);
  EXPECT_TRUE(state_parts::is_granted(job.core, {kFirst, before}));
  EXPECT_EQ(job.core.state().phase, JobPhase::kRunning);
  EXPECT_TRUE(hear(job, 0).empty());
  const auto all_heard = hear(job, 1);
  ASSERT_EQ(events_in(all_heard), std::vector<EventKind>{EventKind::kSupervisorAdopted});
  EXPECT_TRUE(job.core.outstanding(HostId(0), {job.report_of(kFirst, RankPhase::kRunning)}).empty());
  EXPECT_EQ(job.crew(0).generation, before);
}

TEST(JobCoreReturn, EndsAsItWouldHaveWithoutTheCrash) {
  Driver job(job_of(1, 1));
  job.run_all();
  come_back(job);
  hear(job, 0);
  job.ended(0, exited(0));
  job.end_hosts();
  ASSERT_NE(job.verdict(), nullptr);
  EXPECT_EQ(job.verdict()->exit_code, 0);
}

TEST(JobCoreReturn, SeesTheEndOfARankThatEndedMeanwhile) {
  Driver job(job_of(1, 2));
  job.run_all();
  come_back(job, Duration::seconds(30));
  job.ended(1, exited(7));
  job.pass_deadline();
  job.ended(0, killed_by_us(15));
  job.end_hosts();
  ASSERT_NE(job.verdict(), nullptr);
  EXPECT_EQ(job.verdict()->exit_code, 7);
  EXPECT_EQ(job.verdict()->cause.rank, 1U);
}

TEST(JobCoreReturn, WaitsForTheEndsThatOtherHostsCouldNotTell) {
  Driver job(job_of(2, 1));
  job.run_all();
  come_back(job);
  const Instant returned = job.now;
  hear(job, 0);
  job.ended(0, exited(1));  // its peer had gone
  EXPECT_EQ(job.gang(0).cause_deadline, returned + Duration::seconds(1));
}

TEST(JobCoreReturn, SaysAStartAgainThatNeverLeftAtTheSameGeneration) {
  Driver job(job_of(1, 1));
  job.begin();
  job.join(0);
  job.give_ports();
  const Generation before = job.crew(0).generation;
  EXPECT_EQ(Driver::count<SendStart>(come_back(job)), 0U);  // it may have left
  hear(job, 0);
  const auto missing = job.core.outstanding(HostId(0), {});
  ASSERT_EQ(missing.size(), 1U);
  const auto* start = std::get_if<SendStart>(&missing[0]);
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(start->message.generation, before);
  EXPECT_TRUE(job.core.outstanding(HostId(0), {job.report_of(kFirst, RankPhase::kGated)}).empty());
}

TEST(JobCoreReturn, AsksAgainForPortsThatNobodyAnswered) {
  Driver job(job_of(1, 1));
  job.begin();
  job.join(0);
  come_back(job);
  hear(job, 0);
  const auto missing = job.core.outstanding(HostId(0), {});
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<SendReserve>(missing[0]));
  job.give_ports();
  EXPECT_EQ(job.actions_of<SendStart>().size(), 1U);
}

TEST(JobCoreReturn, EndsAndLaunchesAgainWhatWasBeingLaunched) {
  Driver job(job_of(2, 1));
  job.begin();
  job.join(0);
  const auto actions = come_back(job);
  ASSERT_EQ(Driver::count<DestroyWorker>(actions), 1U);
  EXPECT_EQ(Driver::count<LaunchWorker>(actions), 0U);
  const auto ended = job.step(WorkerEnded{.host = HostId(1), .how = "was not running", .orderly = true});
  EXPECT_EQ(Driver::count<LaunchWorker>(ended), 1U);
  EXPECT_EQ(job.core.state().phase, JobPhase::kStarting);
  job.join(1);
  job.give_ports();
  EXPECT_EQ(job.actions_of<SendStart>().size(), 2U);
}

TEST(JobCoreReturn, LaunchesAgainAlsoAfterASecondCrash) {
  Driver job(job_of(1, 1));
  job.begin();
  come_back(job);
  const auto again = job.step(SupervisorReturned{.term = Term(3)});
  EXPECT_EQ(Driver::count<DestroyWorker>(again), 1U);
  EXPECT_EQ(
      Driver::count<LaunchWorker>(job.step(WorkerEnded{.host = HostId(0), .how = "was not running", .orderly = true})),
      1U);
}

TEST(JobCoreReturn, AHostThatCannotBeEndedForASecondLaunchHasFailed) {
  Driver job(job_of(1, 1));
  job.begin();
  come_back(job);
  job.pass_deadline();
  ASSERT_TRUE(job.core.state().verdict.has_value());
  EXPECT_EQ(job.core.state().verdict->exit_code, 69);
}

TEST(JobCoreReturn, GivesHostsThatHadNotCalledBackTheirTimeAgain) {
  Driver job(job_of(1, 1));
  job.begin();
  job.step(WorkerLaunched{.host = HostId(0), .worker = {.reply = {.public_key = "key", .keeper_pid = 100}}});
  come_back(job, Duration::seconds(60));
  EXPECT_EQ(Driver::count<DestroyWorker>(job.step(DeadlinePassed{})), 0U);
  job.step(WorkerJoined{.host = HostId(0), .incarnation = 1});
  EXPECT_EQ(job.host(0).phase, HostPhase::kJoined);
}

TEST(JobCoreReturn, AStopThatWasOnItsWayIsNotHeldAgainstItsHosts) {
  Driver job(job_of(1, 1));
  job.run_all();
  job.step(StopOrdered{.request = {.who = "test"}});
  come_back(job, Duration::seconds(600));
  EXPECT_EQ(Driver::count<DestroyWorker>(job.step(DeadlinePassed{})), 0U);
  const auto missing = job.core.outstanding(HostId(0), {job.report_of(kFirst, RankPhase::kRunning)});
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<SendStop>(missing[0]));
  job.ended(0, killed_by_us(15));
  job.end_hosts();
  EXPECT_EQ(job.verdict()->exit_code, 143);
}

TEST(JobCoreReturn, TellsHostsAgainToShutDown) {
  Driver job(job_of(1, 1));
  job.run_all();
  job.ended(0, exited(0));
  ASSERT_EQ(job.core.state().phase, JobPhase::kShuttingDown);
  EXPECT_EQ(Driver::count<SendShutdown>(come_back(job)), 1U);
}

TEST(JobCoreReturn, TellsWhoHasAnsweredAlsoWhereTheLastOneIsLost) {
  Driver job(fixtures::job_that_recovers(2, 1, 4, 4));
  job.run_all();
  come_back(job);
  hear(job, 1);
  EXPECT_TRUE(job.told(EventKind::kSupervisorAdopted).empty());
  job.step(HostSilent{.host = HostId(0), .silence = Duration::seconds(6), .grants_until = job.now});
  ASSERT_EQ(job.told(EventKind::kSupervisorAdopted).size(), 1U);
  EXPECT_EQ(job.told(EventKind::kSupervisorAdopted).back(),
            "1 host has answered within 2ms, lost before they did: v1; 1 rank goes on");
  job.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  EXPECT_EQ(job.told(EventKind::kSupervisorAdopted).size(), 1U) << "it is told once";
}

TEST(JobCoreReturn, NamesAHostWhoseWorkerHadEndedThoughItIsLaunchedAgain) {
  Driver job(fixtures::job_that_recovers(2, 1, 4, 4));
  job.run_all();
  come_back(job);
  job.step(WorkerEnded{.host = HostId(0), .how = "was not running"});
  EXPECT_EQ(job.host(0).phase, HostPhase::kLaunching);
  EXPECT_TRUE(job.told(EventKind::kSupervisorAdopted).empty()) << "the other is awaited";
  hear(job, 1);
  EXPECT_EQ(job.told(EventKind::kSupervisorAdopted).back(),
            "1 host has answered within 2ms, lost before they did: v1; 1 rank goes on");
}

// Its boot clock shows a minute; the one before showed 1000 s and more when the journal ended, an hour ago by the wall
// clock.
TEST(JobCoreReturn, CountsItsTimesOnTheClockOfAMachineThatWasStartedAgain) {
  JobSpec spec = fixtures::job_that_recovers(2, 1, 4, 4);
  spec.time_limit = Duration::seconds(2 * 3'600);
  spec.launch = LaunchLocal{.hosts = 3, .spares = 1};
  Driver job(spec);
  job.begin();
  for (std::uint32_t host = 0; host < 3; ++host) job.join(host);
  job.give_ports();
  for (std::uint32_t r = 0; r < 2; ++r) job.report({MeshId(0), Rank(r)}, RankPhase::kRunning);
  job.fail_gang({MeshId(0), Rank(1)}, exited(1));
  job.step(
      HostSilent{.host = HostId(0), .silence = Duration::seconds(5), .grants_until = job.now + Duration::seconds(6)});
  const Instant before = job.now;
  const JobState old = job.core.state();
  const Instant boot = Instant::since_boot(Duration::seconds(60));
  job.core.step(
      SupervisorReturned{.term = Term(2), .boot_id = "another", .last_seen = before, .away = Duration::seconds(3'600)},
      boot);
  const JobState& state = job.core.state();
  const Instant failed = state_parts::gang(old, MeshId(0), GangId(1)).failures.at(0);
  EXPECT_EQ(boot - job.gang(1).failures.at(0), before - failed + Duration::seconds(3'600));
  EXPECT_EQ(state.time_deadline - boot, old.time_deadline - before - Duration::seconds(3'600));
  const Instant fence = state_parts::host(old, HostId(0)).fence;
  EXPECT_EQ(job.host(0).fence - boot, fence - before) << "I3: no wall clock ends a lease";
  EXPECT_EQ(job.host(1).fence, Instant());
  EXPECT_EQ(state.start_deadline, old.start_deadline);
  EXPECT_EQ(state.boot_id, "another");
}

TEST(JobCoreReturn, LeavesItsTimesAsTheyAreWhereTheMachineHasGoneOn) {
  Driver job(job_of(1, 1));
  job.step(JobBegun{.term = Term(1), .job = JobUuid{}, .boot_id = "this"});
  const Instant deadline = job.core.state().start_deadline;
  job.core.step(SupervisorReturned{.term = Term(2), .boot_id = "this", .last_seen = job.now}, job.now);
  EXPECT_EQ(job.core.state().start_deadline, deadline);
}

}  // namespace
}  // namespace monarch
