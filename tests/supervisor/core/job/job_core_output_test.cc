// A rank of a generation that is over, and what it wrote last, which is still on its way: its host is not ended before
// that is here.

#include <gtest/gtest.h>

#include <string>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/job/operator_request.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;

constexpr RankId kRank{MeshId(0), Rank(0)};

// One rank on each of two machines, each a gang; a third machine is a spare. The first is drained, and its rank has
// ended.
struct Moved : Driver {
  static JobSpec spec() {
    JobSpec spec = fixtures::job_that_recovers(2, 1, 4, 4);
    spec.launch = LaunchSsh{.hosts = {{.name = "a"}, {.name = "b"}, {.name = "c"}}, .spares = 1};
    return spec;
  }
  Moved() : Driver(spec()) {
    run_all();
    join(2);
    before = crew(0).generation;
    const auto plan =
        operator_plan(core, {.wish = OperatorWish::kDrain, .hosts = {"a"}, .now = true, .who = "test"}, now);
    EXPECT_TRUE(plan.ok());
    step(plan->event);
    last = report_of(kRank, RankPhase::kEnded, fixtures::killed_by_us(15));
    last.output_complete = false;
    tell();
  }
  std::vector<Action> tell() {
    return step(RankChanged{.host = HostId(0), .report = last, .ended_at = now, .uncertainty = Duration::zero()});
  }
  std::vector<Action> complete() {
    last.output_complete = true;
    return tell();
  }
  HostPhase phase(std::uint32_t host) const { return Driver::host(host).phase; }

  Generation before;
  RankReport last;
};

TEST(JobCoreOutput, ADrainedHostIsNotEndedBeforeItsLastWordsAreHere) {
  Moved job;
  EXPECT_EQ(job.core.placement().host_of(kRank), HostId(2)) << "its gang waits for nothing";
  EXPECT_EQ(job.gang(0).phase, GangPhase::kReserving);
  EXPECT_EQ(job.phase(0), HostPhase::kJoined);
  job.start_again(0);
  EXPECT_EQ(job.phase(0), HostPhase::kJoined);
  EXPECT_TRUE(judge(job.core.facts(), HostId(0), job.last).counts());
  EXPECT_EQ(Driver::count<DestroyWorker>(job.complete()), 1U);
  EXPECT_EQ(job.phase(0), HostPhase::kDestroying);
  EXPECT_FALSE(judge(job.core.facts(), HostId(0), job.last).counts()) << "nothing is left to learn of it";
  EXPECT_EQ(job.gang(0).phase, GangPhase::kRunning) << "its end is not that of the generation after it";
  EXPECT_TRUE(job.told(EventKind::kOutputIncomplete).empty());
}

TEST(JobCoreOutput, ItIsFoundWhereItRan) {
  Moved job;
  EXPECT_EQ(where_ran(job.core.facts(), {kRank, job.before}), HostId(0));
  EXPECT_EQ(where_ran(job.core.facts(), {kRank, job.crew(0).generation}), HostId(2));
  job.complete();
  EXPECT_EQ(where_ran(job.core.facts(), {kRank, job.before}), HostId(2));
}

TEST(JobCoreOutput, ItIsWaitedForForAMinuteAndThenNamed) {
  Moved job;
  job.start_again(0);
  job.step(DeadlinePassed{}, Duration::seconds(50));
  EXPECT_EQ(job.phase(0), HostPhase::kJoined);
  job.pass_deadline();
  EXPECT_EQ(job.phase(0), HostPhase::kDestroying);
  ASSERT_EQ(job.told(EventKind::kOutputIncomplete).size(), 1U);
  EXPECT_NE(job.told(EventKind::kOutputIncomplete)[0].find("trainer/0 (a)"), std::string::npos);
}

TEST(JobCoreOutput, TheJobsEndWaitsForItToo) {
  Moved job;
  job.start_again(0);
  job.ended(0, fixtures::exited(0));
  job.ended(1, fixtures::exited(0));
  EXPECT_EQ(job.core.state().phase, JobPhase::kDraining);
  job.complete();
  EXPECT_EQ(job.core.state().phase, JobPhase::kShuttingDown);
}

TEST(JobCoreOutput, ItIsNamedOnceWhereTheJobsEndWaitsInVain) {
  Moved job;
  job.start_again(0);
  job.ended(0, fixtures::exited(0));
  job.ended(1, fixtures::exited(0));
  job.step(DeadlinePassed{}, Duration::seconds(61));
  EXPECT_EQ(job.core.state().phase, JobPhase::kShuttingDown);
  job.step(DeadlinePassed{}, Duration::seconds(1));
  EXPECT_EQ(job.told(EventKind::kOutputIncomplete).size(), 1U);
}

TEST(JobCoreOutput, ASupervisorThatComesBackGivesItAMinuteMore) {
  Moved job;
  job.start_again(0);
  const Instant seen = job.now;
  job.step(SupervisorReturned{.term = Term(2), .boot_id = "", .last_seen = seen, .away = Duration::seconds(100)},
           Duration::seconds(100));
  job.step(WorkerJoined{.host = HostId(0), .incarnation = 1});
  job.step(DeadlinePassed{}, Duration::seconds(50));
  EXPECT_EQ(job.phase(0), HostPhase::kJoined);
  job.step(DeadlinePassed{}, Duration::seconds(11));
  EXPECT_EQ(job.phase(0), HostPhase::kDestroying);
}

TEST(JobCoreOutput, OfAHostThatIsLostItIsNotWaitedFor) {
  Moved job;
  job.start_again(0);
  job.step(WorkerEnded{.host = HostId(0), .how = "SIGKILL", .orderly = false});
  job.ended(0, fixtures::exited(0));
  job.ended(1, fixtures::exited(0));
  EXPECT_EQ(job.core.state().phase, JobPhase::kShuttingDown);
  ASSERT_EQ(job.told(EventKind::kOutputIncomplete).size(), 1U);
  EXPECT_NE(job.told(EventKind::kOutputIncomplete)[0].find("trainer/0 (a)"), std::string::npos);
}

TEST(JobCoreOutput, OfAHostThatIsLostAndMayServeAgainItIsNamed) {
  Moved job;
  job.start_again(0);
  const auto back = operator_plan(job.core, {.wish = OperatorWish::kUndrain, .hosts = {"a"}, .who = "test"}, job.now);
  ASSERT_TRUE(back.ok());
  job.step(back->event);
  job.step(WorkerEnded{.host = HostId(0), .how = "SIGKILL", .orderly = false});
  ASSERT_EQ(job.phase(0), HostPhase::kLaunching) << "another worker begins there";
  ASSERT_EQ(job.told(EventKind::kOutputIncomplete).size(), 1U);
  EXPECT_NE(job.told(EventKind::kOutputIncomplete)[0].find("trainer/0 (a)"), std::string::npos);
}

// Its rank has ended with an error, and what it wrote last is on its way; it is started again at once, in its place.
struct AgainThere : Driver {
  AgainThere() : Driver(Moved::spec()) {
    run_all();
    join(2);
    last = report_of(kRank, RankPhase::kEnded, fixtures::exited(1));
    RankReport late = last;
    late.output_complete = false;
    step(RankChanged{.host = HostId(0), .report = late, .ended_at = now, .uncertainty = Duration::zero()});
    EXPECT_EQ(gang(0).phase, GangPhase::kReserving);
    EXPECT_EQ(core.placement().host_of(kRank), HostId(0));
  }
  HostPhase phase(std::uint32_t host) const { return Driver::host(host).phase; }

  RankReport last;
};

void drain_now(Driver& job, const std::string& host) {
  const auto plan =
      operator_plan(job.core, {.wish = OperatorWish::kDrain, .hosts = {host}, .now = true, .who = "test"}, job.now);
  ASSERT_TRUE(plan.ok());
  job.step(plan->event);
}

TEST(JobCoreOutput, WhereTheNextGenerationRunsOnTheSameHostItIsNotWaitedFor) {
  AgainThere job;
  EXPECT_TRUE(judge(job.core.facts(), HostId(0), job.last).counts()) << "nothing of the next one has begun";
  job.give_ports();
  ASSERT_GT(job.crew(0).generation, job.last.process.generation);
  EXPECT_FALSE(judge(job.core.facts(), HostId(0), job.last).counts())
      << "of a rank on one host the newest is told, and no other";
}

TEST(JobCoreOutput, WhereTheNextGenerationWasReservedForAndGivenUpItIsWaitedFor) {
  AgainThere job;
  drain_now(job, "a");
  EXPECT_EQ(job.core.placement().host_of(kRank), HostId(2));
  EXPECT_EQ(job.phase(0), HostPhase::kJoined);
  job.step(RankChanged{.host = HostId(0), .report = job.last, .ended_at = job.now, .uncertainty = Duration::zero()});
  EXPECT_EQ(job.phase(0), HostPhase::kDestroying);
  EXPECT_TRUE(job.told(EventKind::kOutputIncomplete).empty());
}

TEST(JobCoreOutput, OfAHostThatNobodyEndsItIsNotToldThatItIsMissing) {
  AgainThere job;
  job.step(DeadlinePassed{}, Duration::seconds(61));  // a host of the gang does not answer for long
  EXPECT_TRUE(job.told(EventKind::kOutputIncomplete).empty());
  drain_now(job, "a");
  job.step(DeadlinePassed{}, Duration::seconds(59));
  EXPECT_EQ(job.phase(0), HostPhase::kJoined) << "its time begins with the wish";
  job.step(DeadlinePassed{}, Duration::seconds(2));
  EXPECT_EQ(job.phase(0), HostPhase::kDestroying);
  EXPECT_EQ(job.told(EventKind::kOutputIncomplete).size(), 1U);
}

TEST(JobCoreOutput, OfAHostThatIsUsedAgainItIsWaitedForWithoutAnEnd) {
  AgainThere job;
  drain_now(job, "a");
  const auto back = operator_plan(job.core, {.wish = OperatorWish::kUndrain, .hosts = {"a"}, .who = "test"}, job.now);
  ASSERT_TRUE(back.ok());
  job.step(back->event);
  job.step(DeadlinePassed{}, Duration::seconds(61));
  EXPECT_EQ(job.phase(0), HostPhase::kJoined);
  EXPECT_TRUE(job.told(EventKind::kOutputIncomplete).empty());
}

// Two ranks on one machine, each a gang: the first has ended for good, and the second is moved to the other machine.
struct DoneBeside : Driver {
  static JobSpec spec() {
    JobSpec spec = fixtures::job_that_recovers(1, 2, 4, 4);
    spec.meshes[0].gang = {.scope = GangScope::kEach};
    spec.launch = LaunchSsh{.hosts = {{.name = "a"}, {.name = "b"}}, .spares = 1};
    return spec;
  }
  DoneBeside() : Driver(spec()) {
    run_all();
    join(1);
    last = report_of(kRank, RankPhase::kEnded, fixtures::exited(0));
    last.output_complete = false;
    tell();
    drain_now(*this, "a");
    report({MeshId(0), Rank(1)}, RankPhase::kEnded, fixtures::killed_by_us(15));
    EXPECT_EQ(core.placement().host_of({MeshId(0), Rank(1)}), HostId(1));
  }
  void tell() {
    step(RankChanged{.host = HostId(0), .report = last, .ended_at = now, .uncertainty = Duration::zero()});
  }
  HostPhase phase(std::uint32_t host) const { return Driver::host(host).phase; }

  RankReport last;
};

TEST(JobCoreOutput, OfARankThatHasEndedForGoodItIsWaitedForWhereItRan) {
  DoneBeside job;
  EXPECT_EQ(job.phase(0), HostPhase::kJoined);
  job.last.output_complete = true;
  job.tell();
  EXPECT_EQ(job.phase(0), HostPhase::kDestroying);
  job.start_again(1);
  job.ended(1, fixtures::exited(0));
  EXPECT_TRUE(job.told(EventKind::kOutputIncomplete).empty());
}

TEST(JobCoreOutput, OfARankThatHasEndedForGoodItIsNamedOnce) {
  DoneBeside job;
  job.start_again(1);
  job.step(DeadlinePassed{}, Duration::seconds(61));
  EXPECT_EQ(job.phase(0), HostPhase::kDestroying);
  job.ended(1, fixtures::exited(0));
  job.step(DeadlinePassed{}, Duration::seconds(61));
  ASSERT_EQ(job.told(EventKind::kOutputIncomplete).size(), 1U);
  EXPECT_NE(job.told(EventKind::kOutputIncomplete)[0].find("trainer/0 (a)"), std::string::npos);
}

TEST(JobCoreOutput, OfAHostWhoseGangHasEndedForGoodItIsWaitedForForAMinute) {
  JobSpec spec = Moved::spec();
  Driver job(spec);
  job.run_all();
  RankReport last = job.report_of(kRank, RankPhase::kEnded, fixtures::exited(0));
  last.output_complete = false;
  job.step(RankChanged{.host = HostId(0), .report = last, .ended_at = job.now, .uncertainty = Duration::zero()});
  drain_now(job, "a");
  job.step(DeadlinePassed{}, Duration::seconds(59));
  EXPECT_EQ(job.host(0).phase, HostPhase::kJoined);
  job.step(DeadlinePassed{}, Duration::seconds(2));
  EXPECT_EQ(job.host(0).phase, HostPhase::kDestroying);
  EXPECT_EQ(job.told(EventKind::kOutputIncomplete).size(), 1U);
}

TEST(JobCoreOutput, OfAHostThatIsLostItIsNamedOnceWhereTheJobEndsMeanwhile) {
  Driver job(Moved::spec());
  job.run_all();
  RankReport last = job.report_of(kRank, RankPhase::kEnded, fixtures::exited(0));
  last.output_complete = false;
  job.step(RankChanged{.host = HostId(0), .report = last, .ended_at = job.now, .uncertainty = Duration::zero()});
  job.step(HostSilent{.host = HostId(0), .silence = Duration::seconds(5), .grants_until = job.now});
  const HostState& lost = job.host(0);
  for (int i = 0; i < 20 && lost.phase != HostPhase::kLost; ++i) job.pass_deadline();
  ASSERT_NE(lost.cold_at, Instant::never());
  job.step(DeadlinePassed{}, lost.cold_at - job.now - Duration::seconds(1));
  EXPECT_TRUE(job.told(EventKind::kOutputIncomplete).empty());
  job.ended(1, fixtures::exited(0));
  EXPECT_EQ(job.core.state().phase, JobPhase::kShuttingDown);
  for (int i = 0; i < 20 && job.core.next_deadline() != Instant::never(); ++i) job.pass_deadline();
  EXPECT_EQ(job.core.state().phase, JobPhase::kEnded);
  EXPECT_EQ(job.told(EventKind::kOutputIncomplete).size(), 1U);
}

// Of a gang on two machines: its first rank fails, and its machine falls silent before its words are here and its
// second rank has ended.
TEST(JobCoreOutput, OfAHostThatIsLostItIsNamedAlsoWhereItsGangGoesOn) {
  JobSpec spec = Moved::spec();
  spec.meshes[0].gang = {.scope = GangScope::kAll};
  Driver job(spec);
  job.run_all();
  job.join(2);
  RankReport last = job.report_of(kRank, RankPhase::kEnded, fixtures::exited(1));
  last.output_complete = false;
  job.step(RankChanged{.host = HostId(0), .report = last, .ended_at = job.now, .uncertainty = Duration::zero()});
  job.step(HostSilent{.host = HostId(0), .silence = Duration::seconds(5), .grants_until = job.now});
  job.report({MeshId(0), Rank(1)}, RankPhase::kEnded, fixtures::killed_by_us(15));
  EXPECT_TRUE(job.told(EventKind::kOutputIncomplete).empty()) << "it may be heard again";
  job.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  for (int i = 0; i < 20 && job.told(EventKind::kOutputIncomplete).empty(); ++i) job.pass_deadline();
  ASSERT_EQ(job.told(EventKind::kOutputIncomplete).size(), 1U);
  EXPECT_NE(job.told(EventKind::kOutputIncomplete)[0].find("trainer/0 (a)"), std::string::npos);
}

// A gang on two machines, and another mesh on the first of them. The first machine is drained; the other mesh's rank
// ends, and the first of the gang's; its second one takes its time.
TEST(JobCoreOutput, ItIsWaitedForWhereItRanWhenTheSlotLeavesBeforeItsGangHasEnded) {
  JobSpec spec = fixtures::job_of(2, 1);
  spec.meshes.push_back(fixtures::mesh_of("eval", {{"host", 1}}, 0));
  spec.meshes[1].like = MeshId(0);
  for (MeshSpec& mesh : spec.meshes) {
    mesh.supervision.restart = {.max = 4};
    mesh.supervision.reallocate = {.max = 4};
  }
  spec.supervision = spec.meshes[0].supervision;
  spec.launch = LaunchSsh{.hosts = {{.name = "a"}, {.name = "b"}, {.name = "c"}}, .spares = 1};
  Driver job(spec);
  job.run_all();
  job.join(2);
  RankReport last = job.report_of(kRank, RankPhase::kEnded, fixtures::killed_by_us(15));
  last.output_complete = false;
  drain_now(job, "a");
  job.step(RankChanged{.host = HostId(0), .report = last, .ended_at = job.now, .uncertainty = Duration::zero()});
  job.report({MeshId(1), Rank(0)}, RankPhase::kEnded, fixtures::killed_by_us(15));
  ASSERT_EQ(job.core.placement().host_of(kRank), HostId(2)) << "nothing lives on the first any more";
  ASSERT_EQ(job.gang(0).phase, GangPhase::kStopping);
  EXPECT_EQ(job.host(0).phase, HostPhase::kJoined);
  job.report({MeshId(0), Rank(1)}, RankPhase::kEnded, fixtures::killed_by_us(15));
  EXPECT_TRUE(state_parts::owed(job.core.state(), HostId(2)).empty()) << "it never ran there";
  EXPECT_EQ(job.host(0).phase, HostPhase::kJoined);
  last.output_complete = true;
  job.step(RankChanged{.host = HostId(0), .report = last, .ended_at = job.now, .uncertainty = Duration::zero()});
  EXPECT_EQ(job.host(0).phase, HostPhase::kDestroying);
  EXPECT_TRUE(job.told(EventKind::kOutputIncomplete).empty());
}

}  // namespace
}  // namespace monarch
