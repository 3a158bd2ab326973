// A gang that was started again and is not ready in time: it fails as one that makes no progress, and who is missing is
// named.

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::exited;
using fixtures::job_that_recovers;
using fixtures::killed_by_us;

constexpr RankId kFirst{MeshId(0), Rank(0)};
constexpr RankId kSecond{MeshId(0), Rank(1)};

// A gang of two ranks on each of two hosts; the first one fails once it has run, and is reserving for its second
// generation.
struct Restarted : Driver {
  explicit Restarted(std::uint32_t restarts = 2, std::optional<ReadyKind> ready = {})
      : Driver(spec_of(restarts, ready)) {
    begin();
    join(0);
    join(1);
    give_ports();
    for (std::uint32_t r = 0; r < 4; ++r) becomes_ready({MeshId(0), Rank(r)});
    EXPECT_EQ(core.state().phase, JobPhase::kRunning);
    fail_gang(kFirst, exited(1));
    EXPECT_EQ(gang(0).phase, GangPhase::kReserving);
  }
  static JobSpec spec_of(std::uint32_t restarts, std::optional<ReadyKind> ready) {
    JobSpec spec = job_that_recovers(2, 2, restarts);
    spec.start_timeout = Duration::seconds(40);
    if (ready) spec.meshes[0].ready.kind = *ready;
    return spec;
  }
  void becomes_ready(RankId id) {
    RankReport report = report_of(id, RankPhase::kRunning);
    report.ready = true;
    step(RankChanged{.host = core.placement().host_of(id), .report = report, .ended_at = now, .uncertainty = {}});
  }
  void pass_the_timeout() {
    EXPECT_LE(core.next_deadline() - now, Duration::seconds(40));
    while (gang(0).phase == GangPhase::kReserving || gang(0).phase == GangPhase::kStarting ||
           (gang(0).phase == GangPhase::kRunning && !gang(0).was_ready)) {
      ASSERT_NE(core.next_deadline(), Instant::never()) << "it waits for ever";
      pass_deadline();
    }
  }
};

TEST(LateGang, FailsWhereARankIsNeverExecutedAndIsStartedOnceMore) {
  Restarted job;
  job.give_ports();
  job.becomes_ready(kSecond);
  job.pass_the_timeout();
  EXPECT_EQ(job.gang(0).phase, GangPhase::kFailing);
  job.report(kFirst, RankPhase::kEnded, killed_by_us(9));
  job.report(kSecond, RankPhase::kEnded, killed_by_us(9));
  const std::string failed = job.told(EventKind::kGangFailed).back();
  EXPECT_NE(failed.find("not ready within start_timeout (40s): waiting for trainer/0@v1 ["), std::string::npos)
      << failed;
  EXPECT_NE(failed.find("restart 2 of 2"), std::string::npos) << failed;
  EXPECT_EQ(job.gang(0).phase, GangPhase::kWaiting);
  EXPECT_EQ(job.gang(1).phase, GangPhase::kRunning);
}

// Found by monarch-sim: it named nobody. Once while the gang waits, once while it is not told which ports it has.
TEST(LateStart, NamesTheRanksOfAGangThatFailedAndIsToStartAgain) {
  for (const Duration backoff : {Duration::seconds(1), Duration::seconds(60)}) {
    JobSpec spec = Restarted::spec_of(50, ReadyKind::kNotify);
    spec.meshes[0].supervision.restart.backoff = backoff;
    spec.meshes[0].supervision.restart.backoff_max = backoff * 2;
    Driver job(spec);
    job.begin();
    job.join(0);
    job.join(1);
    job.give_ports();
    for (std::uint32_t r : {2U, 3U}) {
      RankReport report = job.report_of({MeshId(0), Rank(r)}, RankPhase::kRunning);
      report.ready = true;
      job.step(RankChanged{.host = HostId(1), .report = report, .ended_at = job.now, .uncertainty = {}});
    }
    GangPhase last = GangPhase::kStarting;
    bool again = false;
    for (int i = 0; i < 20 && !job.core.state().verdict; ++i) {
      last = job.gang(0).phase;
      if (last == GangPhase::kStarting) {
        job.fail_gang(kFirst, exited(1));
      } else if (last == GangPhase::kReserving && !std::exchange(again, true)) {
        job.give_ports();  // and not for its third generation
      } else {
        job.pass_deadline();
      }
    }
    EXPECT_EQ(last, backoff == Duration::seconds(1) ? GangPhase::kReserving : GangPhase::kWaiting);
    ASSERT_TRUE(job.core.state().verdict);
    const std::string& reason = job.core.state().verdict->reason;
    EXPECT_NE(reason.find("waiting for ranks trainer/0@v1 (its gang has failed, and is to start again), trainer/1@v1"),
              std::string::npos)
        << reason;
  }
}

TEST(LateGang, FailsWhereAHostNeverSaysWhichPortsItHolds) {
  Restarted job;
  job.pass_the_timeout();
  EXPECT_EQ(job.gang(0).phase, GangPhase::kWaiting) << "nothing of it runs: it needs no stop";
  const std::string failed = job.told(EventKind::kGangFailed).back();
  EXPECT_NE(failed.find("waiting for v1 (has not said which ports it holds)"), std::string::npos) << failed;
}

TEST(LateGang, FailsTheJobOnceItsBudgetIsSpent) {
  Restarted job(1);
  job.pass_the_timeout();
  ASSERT_TRUE(job.core.state().verdict.has_value());
  EXPECT_EQ(job.core.state().verdict->cause.rule, "restart: 1 of 1 in 10m are spent: fail");
}

TEST(LateGang, FailsWhereItRunsAndNeverSaysThatItIsReady) {
  Restarted job(2, ReadyKind::kNotify);
  job.start_again(0);
  EXPECT_EQ(job.gang(0).phase, GangPhase::kRunning);
  job.becomes_ready(kFirst);
  job.pass_the_timeout();
  EXPECT_EQ(job.gang(0).phase, GangPhase::kFailing);
  job.report(kFirst, RankPhase::kEnded, killed_by_us(9));
  job.report(kSecond, RankPhase::kEnded, killed_by_us(9));
  const std::string failed = job.told(EventKind::kGangFailed).back();
  EXPECT_NE(failed.find("waiting for trainer/1@v1 (has not said READY=1) ["), std::string::npos) << failed;
}

TEST(LateGang, IsNoneOnceItIsReady) {
  Restarted job(2, ReadyKind::kNotify);
  job.start_again(0);
  job.becomes_ready(kFirst);
  job.becomes_ready(kSecond);
  while (job.core.next_deadline() != Instant::never()) job.pass_deadline();
  EXPECT_EQ(job.gang(0).phase, GangPhase::kRunning);
  EXPECT_EQ(job.told(EventKind::kGangFailed).size(), 1U);
}

TEST(LateGang, HasItsTimeAlsoWhereAnOperatorForgaveItsFailures) {
  Restarted job;
  job.give_ports();
  job.becomes_ready(kSecond);
  job.step(OperatorAsked{.wish = OperatorWish::kRetry, .ranks = {kFirst}, .who = "test"});
  job.pass_the_timeout();
  EXPECT_EQ(job.gang(0).phase, GangPhase::kFailing);
}

TEST(LateGang, HasItsTimeAlsoWhereOneOfItsRanksGoesOn) {
  Restarted job(2, ReadyKind::kNotify);
  job.start_again(0);
  job.step(GangProgressed{.mesh = MeshId(0), .gang = GangId(0), .generation = job.crew(0).generation});
  job.pass_the_timeout();
  EXPECT_EQ(job.gang(0).phase, GangPhase::kFailing);
}

TEST(LateGang, HasTimeToAnswerASupervisorThatCameBack) {
  Restarted job;
  job.step(SupervisorReturned{.term = Term(2)}, Duration::seconds(39));
  EXPECT_EQ(job.core.next_deadline() - job.now, Duration::seconds(20));
}

}  // namespace
}  // namespace monarch
