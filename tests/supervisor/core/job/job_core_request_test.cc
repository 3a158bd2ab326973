// Hosts on request: a machine that somebody has to grant takes the place of one that is lost, or does not come, and the
// next stage follows.

#include <gtest/gtest.h>

#include "supervisor/core/job/status.h"
#include "supervisor/launch/slurm/slurm_spec.h"
#include "tests/supervisor/core/fixtures.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::job_that_recovers;

constexpr HostId kNew(2);

// Two nodes with a gang each, no spare, and two more on request.
JobSpec job_on_slurm(bool shrinks = false) {
  JobSpec spec = job_that_recovers(2, 1, 4, 4);
  if (shrinks) spec.meshes[0].supervision.shrink = ShrinkPolicy{.along = "host", .min = 1, .regrow = true};
  spec.supervision = spec.meshes[0].supervision;
  spec.launch = LaunchSlurm{.allocation = Allocation{.job = 7, .nodes = {"h1", "h2"}}, .replacements = 2};
  return spec;
}

void lose(Driver& driver, std::uint32_t host) {
  driver.step(HostSilent{.host = HostId(host), .silence = Duration::seconds(5), .grants_until = driver.now});
  driver.step(WorkerEnded{.host = HostId(host), .how = "killed by SIGKILL"});
}

void refuse(Driver& driver, HostId host) {
  driver.step(WorkerLaunchFailed{.host = host,
                                 .failure = {.kind = LaunchFailureKind::kNotGranted,
                                             .phase = "queue",
                                             .elapsed = {},
                                             .message = "Slurm job 12 waited for 15m: Resources",
                                             .words = {},
                                             .again = {}}});
  driver.step(WorkerEnded{.host = host, .how = "was not running", .orderly = true});
}

// Slurm has taken the node out of its job: it does not come back.
void leave(Driver& driver, HostId host) {
  driver.step(OperatorAsked{.wish = OperatorWish::kDrain, .ranks = {}, .hosts = {host}, .who = "Slurm"});
}

std::string phase_of(const Driver& driver, HostId host) {
  return status_of(driver.core, "test-0001", driver.now).hosts[host.value()].phase;
}

TEST(HostsOnRequest, AreOfThePoolAndNotAskedForAtTheStart) {
  Driver driver(job_on_slurm());
  driver.run_all();
  ASSERT_EQ(driver.core.hosts().size(), 4U);
  EXPECT_EQ(driver.core.hosts()[2].name, "new1");
  EXPECT_EQ(driver.core.hosts()[3].name, "new2");
  EXPECT_EQ(driver.actions_of<LaunchWorker>().size(), 2U);
  EXPECT_EQ(phase_of(driver, kNew), "on request");
  EXPECT_EQ(driver.told(EventKind::kJobStarting).front(), "test-0001: starting on 2 hosts");
}

TEST(HostsOnRequest, AreNoneWhereNoHostMayBeReplaced) {
  JobSpec spec = job_on_slurm();
  spec.meshes[0].supervision.reallocate.max = 0;
  EXPECT_EQ(pool_of(spec).size(), 2U);
}

TEST(HostsOnRequest, TakeThePlaceOfALostOneAndTheNameOfTheirMachine) {
  Driver driver(job_on_slurm());
  driver.run_all();
  lose(driver, 1);
  EXPECT_EQ(driver.host(2).phase, HostPhase::kLaunching);
  EXPECT_EQ(phase_of(driver, kNew), "queued");
  driver.step(HostNamed{.host = kNew, .name = "h9", .how = "Slurm job 12, after 3 s"});
  EXPECT_EQ(driver.core.hosts()[2].name, "h9");
  EXPECT_EQ(driver.told(EventKind::kHostNamed).back(), "new1 is h9: Slurm job 12, after 3 s");
  driver.join(2);
  driver.start_again(1);
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kRunning);
  EXPECT_EQ(driver.gang(0).restarts, 0U) << "the healthy gang went on";
  JobCore again(job_on_slurm(), pool_of(job_on_slurm()), {.job_id = "test-0001"});
  again.restore(driver.core.state());
  EXPECT_EQ(again.hosts()[2].name, "h9") << "the name is a part of the state";
}

TEST(HostsOnRequest, GetANameOfTheirOwnWhereTheMachineWasOfTheJobBefore) {
  Driver driver(job_on_slurm());
  driver.run_all();
  lose(driver, 1);
  driver.step(HostNamed{.host = kNew, .name = "h2", .how = "Slurm job 12"});
  EXPECT_EQ(driver.core.hosts()[2].name, "h2.2");
}

TEST(HostsOnRequest, AreAskedForAnewWithAnotherMachine) {
  Driver driver(job_on_slurm());
  driver.run_all();
  lose(driver, 1);
  driver.step(HostNamed{.host = kNew, .name = "h9", .how = "Slurm job 12"});
  driver.join(2);
  driver.start_again(1);
  lose(driver, 2);
  EXPECT_EQ(driver.core.hosts()[2].name, "new1") << "h9 is gone; the next one is nobody yet";
  EXPECT_EQ(driver.actions_of<LaunchWorker>().size(), 4U) << "one more was asked for";
}

TEST(HostsOnRequest, FailTheJobWhenNobodyIsGrantedAndNothingElseIsLeft) {
  Driver driver(job_on_slurm());
  driver.run_all();
  lose(driver, 1);
  leave(driver, HostId(1));
  refuse(driver, kNew);
  ASSERT_TRUE(driver.core.state().verdict.has_value()) << "the other one on request is not tried after it";
  EXPECT_EQ(driver.core.state().verdict->exit_code, 92);
  EXPECT_EQ(driver.actions_of<LaunchWorker>().size(), 3U);
}

TEST(HostsOnRequest, LetTheJobShrinkWhenNobodyIsGrantedAndAreAskedForAgainLater) {
  Driver driver(job_on_slurm(true));
  driver.run_all();
  lose(driver, 1);
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kWaiting) << "in the queue";
  leave(driver, HostId(1));
  refuse(driver, kNew);
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kParked);
  EXPECT_EQ(driver.gang(0).phase, GangPhase::kRunning);
  const auto asked = [&] { return driver.actions_of<LaunchWorker>().size(); };
  const std::size_t before = asked();
  driver.step(DeadlinePassed{}, Duration::seconds(59));
  EXPECT_EQ(asked(), before);
  driver.step(DeadlinePassed{}, Duration::seconds(2));
  EXPECT_EQ(asked(), before + 1);
  refuse(driver, kNew);
  driver.step(DeadlinePassed{}, Duration::seconds(61));
  EXPECT_EQ(asked(), before + 1) << "twice as long the second time";
  EXPECT_LE(driver.core.next_deadline() - driver.now, Duration::seconds(60));
  driver.step(DeadlinePassed{}, Duration::seconds(60));
  EXPECT_EQ(asked(), before + 2);
}

TEST(HostsOnRequest, AreAskedForInTimeByASupervisorOnAMachineThatWasStartedAgain) {
  Driver driver(job_on_slurm(true));
  driver.run_all();
  lose(driver, 1);
  leave(driver, HostId(1));
  refuse(driver, kNew);
  const Instant old = driver.core.state().no_request_before;
  ASSERT_GT(old, driver.now);
  const Instant boot = Instant::since_boot(Duration::seconds(60));
  driver.core.step(
      SupervisorReturned{.term = Term(2), .boot_id = "another", .last_seen = driver.now, .away = Duration::seconds(10)},
      boot);
  EXPECT_EQ(driver.core.state().no_request_before - boot, old - driver.now - Duration::seconds(10));
}

// Two gangs on two hosts each; the second loses both.
class ShrunkJob : public testing::Test {
 public:
  static JobSpec spec() {
    JobSpec made = job_on_slurm(true);
    made.meshes[0] = fixtures::mesh_of("trainer", {{"replica", 2}, {"host", 2}, {"gpu", 1}}, 1);
    made.meshes[0].gang = {.scope = GangScope::kDimension, .along = 0};
    made.meshes[0].supervision = job_that_recovers(2, 1, 4, 4).meshes[0].supervision;
    made.meshes[0].supervision.shrink = ShrinkPolicy{.along = "replica", .min = 1, .regrow = true};
    made.supervision = made.meshes[0].supervision;
    made.launch = LaunchSlurm{.allocation = Allocation{.job = 7, .nodes = {"h1", "h2", "h3", "h4"}}, .replacements = 2};
    return made;
  }
  // What the last rank wrote may be on its way yet.
  static void lose_a_second_host(Driver& driver, bool all_is_here = true) {
    driver.run_all();
    lose(driver, 3);
    leave(driver, HostId(3));
    driver.ended(2, fixtures::killed_by_us(9));
    driver.step(HostNamed{.host = HostId(4), .name = "h9", .how = "Slurm job 12"});
    driver.join(4);
    driver.start_again(1);
    ASSERT_EQ(driver.gang(1).phase, GangPhase::kRunning);
    lose(driver, 2);
    RankReport last = driver.report_of({MeshId(0), Rank(3)}, RankPhase::kEnded, fixtures::killed_by_us(9));
    last.output_complete = all_is_here;
    driver.step(RankChanged{.host = HostId(4), .report = last, .ended_at = driver.now});
  }
  void SetUp() override {
    lose_a_second_host(driver_);
    leave(driver_, HostId(2));
  }

 protected:
  HostPhase phase(std::uint32_t host) const { return driver_.host(host).phase; }

  Driver driver_{spec()};
};

TEST_F(ShrunkJob, GivesBackWhatServesParkedGangsAloneAndAsksForItAgain) {
  ASSERT_EQ(phase(5), HostPhase::kLaunching) << "in the queue";
  EXPECT_EQ(phase(4), HostPhase::kJoined) << "it waits with the gang";
  refuse(driver_, HostId(5));
  EXPECT_EQ(driver_.gang(1).phase, GangPhase::kParked);
  EXPECT_EQ(phase(4), HostPhase::kDestroying);
  EXPECT_EQ(driver_.told(EventKind::kHostReleased).size(), 1U);
  EXPECT_EQ(driver_.gang(0).phase, GangPhase::kRunning);
  driver_.step(WorkerEnded{.host = HostId(4), .how = "ended", .orderly = true});
  EXPECT_EQ(phase(4), HostPhase::kCold);
  driver_.step(DeadlinePassed{}, Duration::seconds(61));
  EXPECT_EQ(phase(4), HostPhase::kLaunching);
  EXPECT_EQ(phase(5), HostPhase::kLaunching) << "both are asked for";
  driver_.step(HostNamed{.host = HostId(4), .name = "h7", .how = "Slurm job 13"});
  driver_.join(4);
  EXPECT_EQ(phase(4), HostPhase::kJoined) << "it waits for the other one, which is in the queue";
  driver_.step(HostNamed{.host = HostId(5), .name = "h8", .how = "Slurm job 14"});
  driver_.join(5);
  driver_.start_again(1);
  EXPECT_EQ(driver_.gang(1).phase, GangPhase::kRunning);
  EXPECT_EQ(driver_.told(EventKind::kHostReleased).size(), 1U);
}

TEST_F(ShrunkJob, GivesNothingBackBeforeWhatRanThereLastIsRead) {
  Driver driver(spec());
  lose_a_second_host(driver, false);
  leave(driver, HostId(2));
  refuse(driver, HostId(5));
  EXPECT_EQ(driver.host(4).phase, HostPhase::kJoined);
  RankReport last = driver.report_of({MeshId(0), Rank(3)}, RankPhase::kEnded, fixtures::killed_by_us(9));
  driver.step(RankChanged{.host = HostId(4), .report = last, .ended_at = driver.now});
  EXPECT_EQ(driver.host(4).phase, HostPhase::kDestroying);
  EXPECT_EQ(driver.told(EventKind::kHostReleased).size(), 1U);
  EXPECT_TRUE(driver.told(EventKind::kOutputIncomplete).empty());
}

TEST_F(ShrunkJob, GivesBackWhereWhatRanThereLastDoesNotComeBeforeItAsksAgain) {
  Driver driver(spec());
  lose_a_second_host(driver, false);
  leave(driver, HostId(2));
  refuse(driver, HostId(5));
  driver.step(DeadlinePassed{}, Duration::seconds(29));
  EXPECT_EQ(driver.host(4).phase, HostPhase::kJoined);
  driver.step(DeadlinePassed{}, Duration::seconds(2));
  EXPECT_EQ(driver.host(4).phase, HostPhase::kDestroying);
  EXPECT_EQ(driver.told(EventKind::kOutputIncomplete).size(), 1U);
  EXPECT_EQ(driver.told(EventKind::kHostReleased).size(), 1U);
}

TEST_F(ShrunkJob, AsksMoreAndMoreSeldomAlsoWhereOneOfTwoIsGranted) {
  refuse(driver_, HostId(5));
  driver_.step(WorkerEnded{.host = HostId(4), .how = "ended", .orderly = true});
  driver_.step(DeadlinePassed{}, Duration::seconds(61));
  driver_.step(HostNamed{.host = HostId(4), .name = "h7", .how = "Slurm job 13"});
  driver_.join(4);
  refuse(driver_, HostId(5));
  EXPECT_EQ(phase(4), HostPhase::kDestroying);
  driver_.step(WorkerEnded{.host = HostId(4), .how = "ended", .orderly = true});
  driver_.step(DeadlinePassed{}, Duration::seconds(61));
  EXPECT_EQ(phase(4), HostPhase::kCold) << "twice as long the second time";
  driver_.step(DeadlinePassed{}, Duration::seconds(60));
  EXPECT_EQ(phase(4), HostPhase::kLaunching);
  refuse(driver_, HostId(4));
  refuse(driver_, HostId(5));
  driver_.step(DeadlinePassed{}, Duration::seconds(239));
  EXPECT_EQ(phase(4), HostPhase::kCold);
  driver_.step(DeadlinePassed{}, Duration::seconds(2));
  EXPECT_EQ(phase(4), HostPhase::kLaunching) << "two that were asked for together count once";
}

TEST_F(ShrunkJob, BeginsAnewWithItsPausesOnceItIsWhole) {
  refuse(driver_, HostId(5));
  driver_.step(WorkerEnded{.host = HostId(4), .how = "ended", .orderly = true});
  driver_.step(DeadlinePassed{}, Duration::seconds(61));
  EXPECT_EQ(driver_.core.state().refusals, 1U);
  for (const std::uint32_t host : {4U, 5U}) {
    driver_.step(HostNamed{.host = HostId(host), .name = text("g", host), .how = "Slurm job 13"});
    driver_.join(host);
  }
  driver_.start_again(1);
  EXPECT_EQ(driver_.gang(1).phase, GangPhase::kRunning);
  EXPECT_EQ(driver_.core.state().refusals, 0U);
}

TEST(HostsOnRequest, AreKeptWhereTheyMayHoldTheOnlyCopies) {
  JobSpec spec = ShrunkJob::spec();
  spec.checkpoints = {.peer = 1, .memory = 1U << 20U};
  Driver driver(spec);
  ShrunkJob::lose_a_second_host(driver);
  leave(driver, HostId(2));
  refuse(driver, HostId(5));
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kParked);
  EXPECT_EQ(driver.host(4).phase, HostPhase::kJoined);
}

TEST(HostsOnRequest, AreKeptWhereAHostOfTheJobsOwnIsDueBack) {
  Driver driver(ShrunkJob::spec());
  ShrunkJob::lose_a_second_host(driver);
  refuse(driver, HostId(5));
  EXPECT_EQ(driver.host(4).phase, HostPhase::kJoined);
  leave(driver, HostId(2));
  EXPECT_EQ(driver.gang(1).phase, GangPhase::kParked);
  EXPECT_EQ(driver.host(4).phase, HostPhase::kDestroying) << "it does not come back";
}

TEST_F(ShrunkJob, KeepsWhatBelongsToItsOwnAllocation) {
  refuse(driver_, HostId(5));
  EXPECT_EQ(phase(0), HostPhase::kJoined);
  EXPECT_EQ(phase(1), HostPhase::kJoined);
}

TEST(HostsOnRequest, DoNotLetTimeInTheQueueCountForTheStart) {
  Driver driver(job_on_slurm());
  driver.begin();
  driver.join(0);
  driver.step(WorkerLaunchFailed{.host = HostId(1), .failure = {.phase = "start", .message = "no step"}});
  driver.step(WorkerEnded{.host = HostId(1), .how = "was not running", .orderly = true});
  ASSERT_EQ(driver.host(2).phase, HostPhase::kLaunching);
  driver.step(DeadlinePassed{}, driver.core.spec().start_timeout + Duration::seconds(1));
  EXPECT_FALSE(driver.core.state().verdict.has_value()) << "Slurm has not granted it yet";
  driver.step(HostNamed{.host = kNew, .name = "h9", .how = "Slurm job 12"});
  driver.step(DeadlinePassed{}, driver.core.spec().start_timeout + Duration::seconds(1));
  EXPECT_TRUE(driver.core.state().verdict.has_value()) << "now its worker is missing";
}

}  // namespace
}  // namespace monarch
