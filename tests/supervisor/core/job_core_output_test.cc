// A rank of a generation that is over, and what it wrote last, which is still on its way: its host is not ended before that is here.

#include <gtest/gtest.h>

#include <string>

#include "supervisor/core/job_core.h"
#include "supervisor/core/operator_request.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;

constexpr RankId kRank{MeshId(0), Rank(0)};

// One rank on each of two machines, each a gang; a third machine is a spare. The first is drained, and its rank has ended.
struct Moved : Driver {
  static JobSpec spec() {
    JobSpec spec = fixtures::job_that_recovers(2, 1, 4, 4);
    spec.launch = LaunchSsh{.hosts = {{.name = "a"}, {.name = "b"}, {.name = "c"}}, .spares = 1};
    return spec;
  }
  Moved() : Driver(spec()) {
    run_all();
    join(2);
    before = gang(0).generation;
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
  HostPhase phase(std::uint32_t host) const { return core.state().hosts[host].phase; }

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
  EXPECT_TRUE(job.core.concerns(HostId(0), job.last));
  EXPECT_EQ(Driver::count<DestroyWorker>(job.complete()), 1U);
  EXPECT_EQ(job.phase(0), HostPhase::kDestroying);
  EXPECT_FALSE(job.core.concerns(HostId(0), job.last)) << "nothing is left to learn of it";
  EXPECT_EQ(job.gang(0).phase, GangPhase::kRunning) << "its end is not that of the generation after it";
  EXPECT_TRUE(job.told("output.incomplete").empty());
}

TEST(JobCoreOutput, ItIsFoundWhereItRan) {
  Moved job;
  EXPECT_EQ(job.core.where_is(kRank, job.before), HostId(0));
  EXPECT_EQ(job.core.where_is(kRank, job.gang(0).generation), HostId(2));
  job.complete();
  EXPECT_EQ(job.core.where_is(kRank, job.before), HostId(2));
}

TEST(JobCoreOutput, ItIsWaitedForForAMinuteAndThenNamed) {
  Moved job;
  job.start_again(0);
  job.step(DeadlinePassed{}, Duration::seconds(50));
  EXPECT_EQ(job.phase(0), HostPhase::kJoined);
  job.pass_deadline();
  EXPECT_EQ(job.phase(0), HostPhase::kDestroying);
  ASSERT_EQ(job.told("output.incomplete").size(), 1U);
  EXPECT_NE(job.told("output.incomplete")[0].find("trainer/0 (a)"), std::string::npos);
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
  EXPECT_EQ(job.told("output.incomplete").size(), 1U);
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
  ASSERT_EQ(job.told("output.incomplete").size(), 1U);
  EXPECT_NE(job.told("output.incomplete")[0].find("trainer/0 (a)"), std::string::npos);
}

TEST(JobCoreOutput, OfAHostThatIsLostAndMayServeAgainItIsNamed) {
  Moved job;
  job.start_again(0);
  const auto back = operator_plan(job.core, {.wish = OperatorWish::kUndrain, .hosts = {"a"}, .who = "test"}, job.now);
  ASSERT_TRUE(back.ok());
  job.step(back->event);
  job.step(WorkerEnded{.host = HostId(0), .how = "SIGKILL", .orderly = false});
  ASSERT_EQ(job.phase(0), HostPhase::kLaunching) << "another worker begins there";
  ASSERT_EQ(job.told("output.incomplete").size(), 1U);
  EXPECT_NE(job.told("output.incomplete")[0].find("trainer/0 (a)"), std::string::npos);
}

TEST(JobCoreOutput, WhereTheNextGenerationRunsOnTheSameHostItIsNotWaitedFor) {
  Driver job(Moved::spec());
  job.run_all();
  job.join(2);
  const RankReport last = job.report_of(kRank, RankPhase::kEnded, fixtures::exited(1));
  RankReport late = last;
  late.output_complete = false;
  job.step(RankChanged{.host = HostId(0), .report = late, .ended_at = job.now, .uncertainty = Duration::zero()});
  job.pass_deadline();  // the first cause is decided, and it is started again at once
  ASSERT_EQ(job.core.placement().host_of(kRank), HostId(0));
  ASSERT_GT(job.gang(0).generation, last.generation);
  EXPECT_FALSE(job.core.concerns(HostId(0), last)) << "of a rank on one host the newest is told, and no other";
}

}  // namespace
}  // namespace monarch
