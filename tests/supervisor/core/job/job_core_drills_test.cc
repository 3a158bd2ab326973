// Drills: who may inject faults into a job, and that what they bring about speaks against no host, while what nobody
// injected does as ever.

#include <gtest/gtest.h>

#include <csignal>

#include "supervisor/core/job/drill_notice.h"
#include "supervisor/core/job/status.h"
#include "supervisor/launch/local/local_spec.h"
#include "tests/supervisor/core/fixtures.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::job_that_recovers;
using fixtures::killed;
using fixtures::mesh_of;

constexpr RankId kTrainer{MeshId(0), Rank(0)};
constexpr RankId kOther{MeshId(0), Rank(1)};
constexpr RankId kEvaluator{MeshId(1), Rank(0)};

// Two meshes on one host, and two spares.
JobSpec job_to_drill(bool allowed = true) {
  JobSpec spec = job_that_recovers(1, 2, 16, 16);
  spec.drills = allowed;
  MeshSpec evaluator = mesh_of("evaluator", {{"host", 1}, {"gpu", 1}}, 1);
  evaluator.like = MeshId(0);
  evaluator.supervision = spec.meshes[0].supervision;
  spec.meshes.push_back(std::move(evaluator));
  spec.launch = LaunchLocal{.hosts = 3, .spares = 2};
  return spec;
}

struct Drilled : Driver {
  explicit Drilled(bool allowed = true) : Driver(job_to_drill(allowed)), allows(allowed) {
    begin();
    for (std::uint32_t i = 0; i < 3; ++i) join(i);
    give_ports();
    for (const RankId& id : {kTrainer, kOther, kEvaluator}) report(id, RankPhase::kRunning);
  }

  std::string notice(DrillNotice told) {
    if (told.drill.empty() && told.what != DrillWhat::kStop) told.drill = "1a2b";
    if (told.who.empty()) told.who = "monarch drill, pid 7";
    const auto plan = drill_plan(core, told, now);
    if (!plan.ok()) return text("no: ", plan.error().message);
    step(plan->event);
    return plan->words;
  }
  std::string begin_drill(const std::string& drill = "1a2b") {
    return notice({.drill = drill, .name = "smoke", .lease = Duration::seconds(20)});
  }
  std::string kill(std::uint32_t number, RankId whom, bool forgiven = true) {
    return notice({.what = DrillWhat::kFault,
                   .number = number,
                   .fault = "kill",
                   .mesh = core.spec().meshes[whom.mesh.value()].name,
                   .rank = whom.rank.value(),
                   .forgiven = forgiven});
  }
  std::string strike(std::uint32_t number, const std::string& host, Duration lasts = {}) {
    return notice({.what = DrillWhat::kFault,
                   .number = number,
                   .fault = "power-loss",
                   .host = host,
                   .lasts = lasts,
                   .forgiven = true});
  }
  // A successor knows what the journal says.
  void take_over() {
    succeed(job_to_drill(allows), core.state());
    step(SupervisorReturned{.term = Term(2)});
  }

  bool allows;
};

TEST(Drill, IsRefusedWhereTheSpecDoesNotAllowIt) {
  Drilled job(false);
  EXPECT_EQ(job.begin_drill(),
            "no: the job does not allow drills: its spec has to say `drills: {allow: true}` when it is started");
  EXPECT_TRUE(job.told(EventKind::kDrillBegun).empty());
}

TEST(Drill, HasTheJobAloneAndSaysSinceWhen) {
  Drilled job;
  EXPECT_EQ(job.begin_drill(), "drill smoke has the job");
  EXPECT_EQ(job.told(EventKind::kDrillBegun), std::vector<std::string>{"drill smoke begins, by monarch drill, pid 7"});
  job.now = job.now + Duration::seconds(5);
  EXPECT_EQ(job.begin_drill("ffff"), "no: another drill smoke (1a2b) has the job since 5s, by monarch drill, pid 7");
  EXPECT_EQ(job.notice({.what = DrillWhat::kFault, .drill = "ffff", .number = 1, .fault = "kill"}),
            "no: another drill smoke (1a2b) has the job since 5s, by monarch drill, pid 7");
  EXPECT_EQ(job.begin_drill(), "drill smoke has the job") << "asked again, it goes on";
  EXPECT_EQ(job.told(EventKind::kDrillBegun).size(), 1U);
  EXPECT_EQ(job.notice({.what = DrillWhat::kEnd, .text = "5 faults"}), "drill smoke has ended");
  EXPECT_EQ(job.told(EventKind::kDrillEnded), std::vector<std::string>{"drill smoke has ended: 5 faults"});
  EXPECT_EQ(job.begin_drill("ffff"), "drill smoke has the job");
}

TEST(Drill, IsToldWithWhatItStrikes) {
  Drilled job;
  job.begin_drill();
  EXPECT_EQ(job.notice({.what = DrillWhat::kFault,
                        .text = "the first",
                        .number = 3,
                        .fault = "hang",
                        .mesh = "trainer",
                        .rank = 1,
                        .lasts = Duration::seconds(10)}),
            "fault 3 is written down");
  EXPECT_EQ(job.told(EventKind::kDrillFault),
            std::vector<std::string>{"fault 3: hang of trainer/1 on v1 for 10s: the first"});
  const std::map<std::string, std::string> details = {{"drill", "1a2b"},    {"number", "3"},     {"fault", "hang"},
                                                      {"host", "v1"},       {"mesh", "trainer"}, {"rank", "1"},
                                                      {"lasts_ms", "10000"}};
  EXPECT_EQ(job.details(EventKind::kDrillFault), details);
  const DrillNotice undone{.what = DrillWhat::kUndone, .number = 3, .fault = "hang", .mesh = "trainer", .rank = 1};
  EXPECT_EQ(job.notice(undone), "fault 3 is written down as taken back");
  EXPECT_EQ(job.told(EventKind::kDrillUndone),
            std::vector<std::string>{"fault 3: hang of trainer/1 on v1 is taken back"});
  // Who had no answer asks again.
  (void)job.notice(undone);
  (void)job.kill(3, kOther);
  EXPECT_EQ(job.told(EventKind::kDrillUndone).size(), 1U);
  EXPECT_EQ(job.told(EventKind::kDrillFault).size(), 1U);
}

TEST(Drill, IsInStatusWithWhatIsOpen) {
  Drilled job;
  const auto shown = [&job] { return status_of(job.core, "test-0001", job.now).drill; };
  using Open = std::vector<std::uint32_t>;
  EXPECT_FALSE(shown());
  job.begin_drill();
  const Instant begun = job.now;
  (void)job.kill(1, kTrainer);
  (void)job.strike(2, "v1", Duration::seconds(10));
  (void)job.strike(3, "v2", Duration::seconds(10));
  EXPECT_EQ(shown()->open, (Open{1, 2, 3}));
  (void)job.notice({.what = DrillWhat::kUndone, .number = 2, .fault = "freeze", .host = "v1"});
  EXPECT_EQ(shown()->open, (Open{1, 3}));
  job.fail_gang(kTrainer, killed(SIGKILL));
  job.start_again(0);
  EXPECT_EQ(shown()->open, Open{3}) << "the first is recovered from";
  job.step(HostSilent{.host = HostId(1), .silence = Duration::seconds(5), .grants_until = job.now});
  EXPECT_EQ(shown()->open, Open{}) << "a spare costs no gang";
  (void)job.notice({.what = DrillWhat::kStop});
  job.now = begun + Duration::seconds(12);
  EXPECT_EQ(shown()->name, "smoke");
  EXPECT_EQ(shown()->who, "monarch drill, pid 7");
  EXPECT_EQ(shown()->since_milliseconds, 12'000);
  EXPECT_TRUE(shown()->stopped);
  (void)job.notice({.what = DrillWhat::kEnd});
  EXPECT_FALSE(shown());
}

TEST(Drill, LetsItsRanksBeTracedByAnybody) {
  for (const bool allowed : {false, true}) {
    Drilled job(allowed);
    const auto starts = job.actions_of<SendStart>();
    ASSERT_FALSE(starts.empty());
    for (const Action& start : starts) {
      EXPECT_EQ(std::get<SendStart>(start).message.traced_by == TracedBy::kAnybody, allowed);
    }
  }
}

TEST(Drill, ExplainsThatAHostIsSuspected) {
  Drilled job;
  job.begin_drill();
  job.step(HostDoubted{.host = HostId(0), .silence = Duration::seconds(3)});
  EXPECT_EQ(job.details(EventKind::kHostSuspect).count("drill"), 0U);
  (void)job.strike(4, "v1", Duration::seconds(10));
  job.step(HostDoubted{.host = HostId(0), .silence = Duration::seconds(4)});
  EXPECT_EQ(job.details(EventKind::kHostSuspect).at("drill"), "4");
}

TEST(Drill, RefusesWhatIsNotThere) {
  Drilled job;
  EXPECT_EQ(job.kill(1, kTrainer),
            "no: the drill does not have the job: it has not begun, has ended, or was not heard of for its lease");
  job.begin_drill();
  EXPECT_EQ(job.strike(1, "v9"), "no: the job has no host v9");
  EXPECT_EQ(job.notice({.what = DrillWhat::kFault, .number = 1, .fault = "kill", .mesh = "nobody", .rank = 0}),
            "no: the job has no mesh nobody");
  EXPECT_EQ(job.notice({.what = DrillWhat::kFault, .number = 1, .fault = "kill", .mesh = "trainer", .rank = 2}),
            "no: mesh trainer has no rank 2");
  EXPECT_EQ(job.notice({.what = DrillWhat::kFault, .fault = "kill", .mesh = "trainer", .rank = 0}),
            "no: the fault has no number, or no name");
  EXPECT_EQ(job.notice({.name = "smoke", .lease = Duration::zero()}),
            "no: the lease of a drill is from 1ms to 1h, not 0s");
}

TEST(Drill, InjectsNothingOnceItIsStopped) {
  Drilled job;
  EXPECT_EQ(job.notice({.what = DrillWhat::kStop}), "no: no drill has the job");
  job.begin_drill();
  job.kill(1, kTrainer);
  EXPECT_EQ(job.notice({.what = DrillWhat::kStop, .who = "monarch drill --stop, pid 9"}),
            "drill smoke is stopped: it injects nothing more, and takes back what is left");
  EXPECT_EQ(job.told(EventKind::kDrillStopped),
            std::vector<std::string>{"drill smoke is stopped, asked by monarch drill --stop, pid 9"});
  EXPECT_EQ(job.kill(2, kOther), "no: the drill was stopped, by monarch drill --stop, pid 9");
  EXPECT_EQ(job.begin_drill(), "no: the drill was stopped, by monarch drill --stop, pid 9");
  EXPECT_EQ(job.notice({.what = DrillWhat::kStop}),
            "no: drill smoke was stopped already, by monarch drill --stop, pid 9");
  // What it did is taken back, and it says so.
  EXPECT_EQ(job.notice({.what = DrillWhat::kUndone, .number = 1, .fault = "kill", .mesh = "trainer", .rank = 0}),
            "fault 1 is written down as taken back");
  EXPECT_EQ(job.notice({.what = DrillWhat::kEnd}), "drill smoke has ended");
  EXPECT_EQ(job.begin_drill(), "no: the drill was stopped, by monarch drill --stop, pid 9") << "also afterwards";
  EXPECT_EQ(job.begin_drill("ffff"), "drill smoke has the job");
}

TEST(Drill, EndsWhereItIsNotHeardOfForItsLease) {
  Drilled job;
  job.begin_drill();
  job.step(DeadlinePassed{}, Duration::seconds(15));
  job.kill(1, kTrainer);  // any notice is a word of it
  job.step(DeadlinePassed{}, Duration::seconds(15));
  EXPECT_TRUE(job.told(EventKind::kDrillEnded).empty());
  EXPECT_LE(job.core.next_deadline() - job.now, Duration::seconds(5));
  job.step(DeadlinePassed{}, Duration::seconds(5));
  EXPECT_EQ(job.told(EventKind::kDrillEnded),
            std::vector<std::string>{"drill smoke has ended: it was not heard of any more for 20s"});
  EXPECT_EQ(job.kill(2, kOther),
            "no: the drill does not have the job: it has not begun, has ended, or was not heard of for its lease");
  EXPECT_EQ(job.begin_drill("ffff"), "drill smoke has the job");
}

// Found by a drill: two kills of two ranks had their host left for good.
TEST(Drill, SpeaksAgainstNoHostByItsOwnBlows) {
  Drilled job;
  job.begin_drill();
  job.kill(1, kEvaluator);
  job.fail_gang(kEvaluator, killed(SIGKILL));
  EXPECT_EQ(job.details(EventKind::kGangFailed).at("drill"), "1");
  EXPECT_TRUE(job.told(EventKind::kGangFailed).back().ends_with(" (by fault 1 of a drill)"));
  job.start_again(0, 1);
  job.kill(2, kTrainer);
  job.fail_gang(kTrainer, killed(SIGSEGV));
  EXPECT_EQ(job.details(EventKind::kGangFailed).at("drill"), "2");
  EXPECT_TRUE(job.host(0).suspicions.empty());
  EXPECT_TRUE(job.told(EventKind::kHostQuarantined).empty());
  EXPECT_EQ(job.gang(0).failures.size(), 1U) << "budgets are real";
}

TEST(Drill, ExplainsAPeerThatDiesOfItsBlow) {
  Drilled job;
  job.begin_drill();
  job.kill(1, kTrainer);
  job.fail_gang(kOther, killed(SIGABRT));
  EXPECT_TRUE(job.host(0).suspicions.empty());
  EXPECT_EQ(job.details(EventKind::kGangFailed).at("drill"), "1");
}

TEST(Drill, CountsAsAnyFailureWhereBudgetsAreReal) {
  Drilled job;
  job.begin_drill();
  job.kill(1, kEvaluator, false);
  job.fail_gang(kEvaluator, killed(SIGKILL));
  job.start_again(0, 1);
  job.kill(2, kTrainer, false);
  job.fail_gang(kTrainer, killed(SIGKILL));
  EXPECT_EQ(job.details(EventKind::kGangFailed).at("drill"), "2") << "it is told all the same";
  EXPECT_EQ(job.host(0).suspicions.size(), 2U);
}

TEST(Drill, ExplainsNoOtherGang) {
  Drilled job;
  job.begin_drill();
  job.kill(1, kTrainer);
  job.fail_gang(kEvaluator, killed(SIGBUS));
  EXPECT_EQ(job.details(EventKind::kGangFailed).count("drill"), 0U);
  EXPECT_EQ(job.host(0).suspicions.size(), 1U);
}

TEST(Drill, ExplainsNothingOnceTheGangHasRecovered) {
  Drilled job;
  job.begin_drill();
  job.kill(1, kEvaluator);
  job.fail_gang(kEvaluator, killed(SIGKILL));
  job.start_again(0, 1);
  job.fail_gang(kEvaluator, killed(SIGBUS));
  EXPECT_EQ(job.host(0).suspicions.size(), 1U);
  EXPECT_EQ(job.details(EventKind::kGangFailed).count("drill"), 0U);
}

TEST(Drill, ExplainsWhatFailsUntilTheGangIsPastWhereItWas) {
  Drilled job;
  job.begin_drill();
  job.kill(1, kEvaluator);
  job.fail_gang(kEvaluator, killed(SIGKILL), 40);
  job.start_again(0, 1);
  job.fail_gang(kEvaluator, killed(SIGBUS), 20);
  EXPECT_TRUE(job.host(0).suspicions.empty()) << "the same blow, or what was left of it";
  job.step(DeadlinePassed{}, Duration::seconds(10));  // its back-off
  job.start_again(0, 1);
  job.step(GangProgressed{
      .mesh = MeshId(1), .gang = GangId(0), .generation = job.crew(0, 1).generation, .step = 41, .at = job.now});
  job.fail_gang(kEvaluator, killed(SIGBUS), 41);
  EXPECT_EQ(job.host(0).suspicions.size(), 1U);
}

TEST(Drill, ExplainsNothingLongAfterABlowThatDidNothing) {
  Drilled job;
  job.begin_drill();
  job.kill(1, kEvaluator);
  job.step(DeadlinePassed{}, kDrillEcho + job.core.spec().supervision.lost_after);
  job.fail_gang(kEvaluator, killed(SIGBUS));
  EXPECT_EQ(job.host(0).suspicions.size(), 1U);
}

TEST(Drill, ExplainsAHostThatItLosesOnceAndItsGangs) {
  Drilled job;
  job.begin_drill();
  job.strike(1, "v1");
  job.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  EXPECT_EQ(job.details(EventKind::kHostLost).at("drill"), "1");
  EXPECT_TRUE(job.host(0).lost_at.empty());
  EXPECT_EQ(job.details(EventKind::kGangFailed).at("drill"), "1");
  EXPECT_FALSE(job.core.state().reallocations.empty()) << "budgets are real";
  // It is a spare again, and lost of something else.
  while (job.host(0).phase != HostPhase::kLaunching) job.pass_deadline();
  job.join(0);
  job.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  EXPECT_EQ(job.details(EventKind::kHostLost).count("drill"), 0U);
  EXPECT_EQ(job.host(0).lost_at.size(), 1U);
}

TEST(Drill, MakesNoLemonOfASpareThatItLosesAgainAndAgain) {
  Drilled job;
  for (std::uint32_t i = 1; i <= 4; ++i) {
    job.begin_drill();
    ASSERT_EQ(job.strike(i, "v3"), text("fault ", i, " is written down"));
    job.step(WorkerEnded{.host = HostId(2), .how = "killed by SIGKILL"}, Duration::seconds(1));
    ASSERT_EQ(job.host(2).standing, HostStanding::kGood) << i;
    while (job.host(2).phase != HostPhase::kLaunching) job.pass_deadline();
    job.join(2);
  }
}

TEST(Drill, IsKnownToTheNextSupervisor) {
  Drilled job;
  job.begin_drill();
  job.kill(1, kEvaluator);
  job.take_over();
  EXPECT_EQ(job.begin_drill("ffff").substr(0, 27), "no: another drill smoke (1a");
  job.fail_gang(kEvaluator, killed(SIGKILL));
  EXPECT_TRUE(job.host(0).suspicions.empty());
  EXPECT_EQ(job.details(EventKind::kGangFailed).at("drill"), "1");
  job.step(SupervisorReturned{.term = Term(3)}, Duration::seconds(60));
  EXPECT_EQ(job.kill(2, kTrainer), "fault 2 is written down") << "nobody could be told meanwhile";
}

TEST(Drill, ThatIsOverLeavesOpenWhatItHasDone) {
  Drilled job;
  job.begin_drill();
  job.kill(1, kEvaluator);
  (void)job.notice({.what = DrillWhat::kEnd});
  EXPECT_EQ(job.begin_drill("ffff"), "drill smoke has the job");
  job.fail_gang(kEvaluator, killed(SIGKILL));
  EXPECT_TRUE(job.host(0).suspicions.empty());
  EXPECT_TRUE(job.told(EventKind::kGangFailed).back().ends_with(" (by a drill)"));
  EXPECT_EQ(
      job.notice(
          {.what = DrillWhat::kFault, .drill = "ffff", .number = 1, .fault = "kill", .mesh = "trainer", .rank = 0}),
      "fault 1 is written down")
      << "each drill counts its own";
  EXPECT_EQ(job.told(EventKind::kDrillFault).size(), 2U);
}

TEST(Drill, KeepsNoMoreFaultsThanASnapshotHolds) {
  Drilled job;
  job.begin_drill();
  for (std::uint32_t i = 1; i <= 256; ++i) ASSERT_EQ(job.kill(i, kTrainer), text("fault ", i, " is written down"));
  EXPECT_EQ(job.kill(257, kTrainer), "no: what 256 faults did is not over: no more are injected at a time");
  EXPECT_EQ(job.core.state().drill.open.size(), 256U);
}

}  // namespace
}  // namespace monarch
