// Each of these turns the verdict of a drill, with its line and exit code.

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "supervisor/drill/core/measure.h"
#include "tests/supervisor/drill/core/drill_run.h"
#include "transport/base/assert.h"

namespace monarch {

namespace {

using namespace monarch::drill;

const InvariantResult& invariant(const DrillReport& report, const std::string& label) {
  const auto found = std::find_if(report.invariants.begin(), report.invariants.end(),
                                  [&](const InvariantResult& one) { return one.label == label; });
  MONARCH_ASSERT(found != report.invariants.end());
  return *found;
}

const BoundResult* bound(const DrillReport& report, const std::string& what) {
  for (const BoundResult& one : report.bounds) {
    if (one.what == what) return &one;
  }
  return nullptr;
}

TEST(MeasureFails, WhereNobodyIsStartedAgain) {
  DrillRun run;
  run.blow("kill", 30, run.rank(0));
  run.fail(0, 30, 30.05);
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 1);
  EXPECT_NE(report.sentence.find("failed: recovered 0"), std::string::npos) << report.sentence;
  EXPECT_EQ(report.faults[0].note, "not every gang that it struck came back to where it was");
}

TEST(MeasureFails, WhereAHealthyGangIsStartedAgain) {
  DrillRun run;
  add_kill(run, 30);
  run.recovers(1, 30.1, {.failed = 30.2, .started = 30.3, .running = 30.4, .first_step = 31, .caught_up = 32});
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 1);
  ASSERT_EQ(report.false_positives.size(), 1U);  // its start follows from that
  EXPECT_EQ(report.false_positives[0], "10.2 s gang.failed trainer: gang 1 gang.failed");
  EXPECT_NE(report.sentence.find("failed: false_positives 1, at most 0"), std::string::npos) << report.sentence;
  EXPECT_EQ(report.faults[0].gangs_started, 1U);
}

TEST(MeasureFails, WhereAGangIsStartedWithoutACause) {
  DrillRun run;
  add_kill(run, 30);
  run.start(1, 40);
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 4);
  EXPECT_EQ(invariant(report, "I11").broken.size(), 1U);
  EXPECT_EQ(report.false_positives.size(), 1U);
}

TEST(MeasureFails, WhereDetectionIsLate) {
  DrillRun run;
  run.record().scenario.expect = {{.measure = Measure::kOursP95, .of = FaultClass::kProcess, .value = 1, .place = {}}};
  run.blow("kill", 30, run.rank(1));
  run.recovers(0, 30, {.failed = 32.05, .started = 32.07, .running = 32.1, .first_step = 33, .caught_up = 33.5});
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 1);
  EXPECT_EQ(report.sentence,
            "drill smoke: failed: ours_p95.process 2.1 s, at most 1.0 s (n 1); 1 fault seen, 0 inert, ours p95 2.1 s "
            "(process)");
}

TEST(MeasureFails, WhereAGenerationIsUsedTwice) {
  DrillRun run;
  add_kill(run, 30);
  for (JobEvent& event : run.record().events) event.generation = 1;
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 4);
  ASSERT_EQ(invariant(report, "I4").broken.size(), 1U);
  EXPECT_EQ(invariant(report, "I4").broken[0], "trainer/0 at 10.1 s, event 8: generation 1 after 1");
}

TEST(MeasureFails, WhereTheCommittedStepGoesBack) {
  DrillRun run;
  run.gang_event(25, EventKind::kCheckpointCommitted, 0).details.emplace_back("step", "100");
  run.gang_event(26, EventKind::kCheckpointCommitted, 1).details.emplace_back("step", "90");
  run.gang_event(27, EventKind::kCheckpointCommitted, 0).details.emplace_back("step", "120");
  add_kill(run, 30, 3);
  EXPECT_EQ(measure(run.done()).exit_code, 0);
  run.gang_event(50, EventKind::kCheckpointCommitted, 0).details.emplace_back("step", "110");
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 4);
  EXPECT_EQ(invariant(report, "I20").checks, 4U);
  EXPECT_NE(report.sentence.find("I20: the committed step never goes back: trainer/0 at 30.0 s, event 15: committed "
                                 "step 110 after 120"),
            std::string::npos)
      << report.sentence;
}

TEST(MeasureFails, WhereAGangGoesOnFromAnOlderCommit) {
  DrillRun run;
  run.gang_event(25, EventKind::kCheckpointCommitted, 0).details.emplace_back("step", "100");
  add_kill(run, 30);
  for (JobEvent& event : run.record().events) {
    if (event.kind == EventKind::kGangStarting && event.generation == 2) event.details.emplace_back("from_step", "80");
  }
  EXPECT_EQ(invariant(measure(run.done()), "I20").broken.size(), 1U);
}

TEST(MeasureFails, WhereSomethingIsLeft) {
  DrillRun run;
  add_kill(run, 30);
  run.record().leftovers = {{.host = "h2", .what = "2 processes of the job"}};
  EXPECT_EQ(measure(run.done()).exit_code, 4);
  run.record().leftovers.clear();
  EXPECT_EQ(measure(run.done()).exit_code, 0);
  run.record().verdict->left_behind = {"h1"};
  EXPECT_EQ(measure(run.done()).exit_code, 4);
  run.record().verdict->left_behind.clear();
  run.record().hosts_searched = 0;  // that nobody has looked is no evidence
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 1);
  EXPECT_NE(report.sentence.find("leftovers: there is no evidence"), std::string::npos) << report.sentence;
}

TEST(MeasureFails, WhereAStrikeDoesNothing) {
  DrillRun run;
  add_kill(run, 25);
  Blow& blow = run.blow("kill", 40, run.rank(2));
  blow.end = BlowEnd::kInert;
  blow.why = "the process lives on";
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 5);
  EXPECT_EQ(report.verdict, DrillVerdict::kInert);
  EXPECT_NE(report.sentence.find("inert 0.5, at most 0.05 (n 2); 1 fault seen, 1 inert"), std::string::npos)
      << report.sentence;
  EXPECT_EQ(report.faults[1].note, "inert: the process lives on");
}

TEST(MeasureFails, WhereAFaultIsNotTakenBack) {
  DrillRun run;
  Blow& blow = run.blow("hang", 25, run.rank(0), 1);
  blow.taken_back = false;
  blow.why = "its session was cut";
  run.rank_event(25.1, EventKind::kRankStopped, 0);
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 4);
  EXPECT_NE(report.sentence.find("I-undo: each fault is taken back: fault 1 (hang of trainer/0): its session was cut"),
            std::string::npos)
      << report.sentence;
}

TEST(MeasureFails, WhereABoundHasNoEvidence) {
  DrillRun run;
  add_kill(run, 30);
  run.record().scenario.expect = {{.measure = Measure::kOursP95, .of = FaultClass::kHang, .value = 5, .place = {}}};
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 1);
  EXPECT_NE(report.sentence.find("failed: ours_p95.hang: there is no evidence"), std::string::npos) << report.sentence;
  EXPECT_EQ(bound(report, "ours_p95.hang")->n, 0U);
}

TEST(MeasureFails, WhereControlHasASuspicion) {
  DrillRun run;
  run.event(15, EventKind::kHostSuspect, "h2");
  run.event(15.5, EventKind::kHostHeard, "h2");
  add_kill(run, 30);
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 1);
  EXPECT_EQ(report.false_positives_of_control, 1U);
  EXPECT_TRUE(bound(report, "false_positives")->met);
  EXPECT_FALSE(bound(report, "false_positives.control")->met);
  EXPECT_EQ(report.false_positives[0], "in control: -5.0 s host.suspect h2 host.suspect");
}

TEST(MeasureFails, WhereOnlyAnotherGangSaysAnything) {
  DrillRun run;
  run.blow("kill", 30, run.rank(0));
  run.recovers(1, 30, {.failed = 30.05, .started = 30.07, .running = 30.1, .first_step = 31, .caught_up = 31.5});
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 1);
  EXPECT_FALSE(report.faults[0].seen);
  EXPECT_EQ(report.recall, 0.0);
  EXPECT_EQ(report.false_positives.size(), 1U);
  EXPECT_NE(report.faults[0].note.find("no event tells of it"), std::string::npos);
}

TEST(MeasureFails, WhereAHostIsQuarantinedForWhatTheDrillDid) {
  DrillRun run;
  add_kill(run, 25, 0);
  add_kill(run, 40, 1);
  run.event(40.06, EventKind::kHostQuarantined, "h1");
  DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 4);
  ASSERT_EQ(invariant(report, "I-quarantine").broken.size(), 1U);
  EXPECT_EQ(invariant(report, "I-quarantine").broken[0], "20.1 s host.quarantined h1 host.quarantined");
  EXPECT_TRUE(report.false_positives.empty());
  run.record().scenario.budgets = Budgets::kReal;
  EXPECT_EQ(measure(run.done()).exit_code, 0);
  run.event(50, EventKind::kHostQuarantined, "h3");  // nobody has touched it
  report = measure(run.done());
  EXPECT_EQ(report.exit_code, 1);
  EXPECT_EQ(report.false_positives.size(), 1U);
}

TEST(MeasureFails, WhereAGangFailsOnceMoreAfterItHadRecovered) {
  DrillRun run;
  add_kill(run, 30);
  run.recovers(0, 45, {.failed = 45.05, .started = 45.07, .running = 45.1, .first_step = 46, .caught_up = 46.5});
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 1);
  EXPECT_EQ(report.false_positives.size(), 1U);
}

TEST(MeasureFails, WhereTwoIncarnationsLive) {
  DrillRun run;
  add_kill(run, 30);
  run.record().incarnations = {{.at = at_second(32), .host = "h1", .ranks = 2, .doubled = {"trainer/1"}}};
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 4);
  EXPECT_EQ(invariant(report, "I1").checks, 2U);
}

TEST(MeasureFails, WhereABudgetIsOverdrawn) {
  DrillRun run;
  add_kill(run, 30);
  for (JobEvent& event : run.record().events) {
    for (auto& detail : event.details) {
      if (detail.first == "number") detail.second = "5";
    }
  }
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 4);
  EXPECT_NE(report.sentence.find("5 of 4"), std::string::npos) << report.sentence;
}

TEST(MeasureFails, WhereTimeIsMissingOrDouble) {
  DrillRun run;
  add_kill(run, 30);
  DrillRecord record = run.done();
  for (DrillSample& sample : record.samples) {
    for (auto& part : sample.meshes[0].rank_milliseconds) {
      if (part.first == "starting" && sample.at >= at_second(40)) part.second += 1000;
    }
  }
  const DrillReport report = measure(record);
  EXPECT_EQ(report.exit_code, 4);
  EXPECT_EQ(report.unaccounted_rank_milliseconds, -1000);
  EXPECT_NE(report.sentence.find("I-ledger"), std::string::npos) << report.sentence;
}

TEST(MeasureFails, WhereNothingWasStruck) {
  DrillRun run;
  run.record().cut_short = "the job ended by itself after 3s";
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 1);
  EXPECT_EQ(report.sentence, "drill smoke: failed: the job ended by itself after 3s; 0 faults seen, 0 inert");
  EXPECT_FALSE(bound(report, "inert")->met);
}

TEST(MeasureFails, WhereItsOutputIsAnother) {
  DrillRun run;
  add_kill(run, 30);
  run.record().scenario.same_output = "loss ([0-9.]+)";
  EXPECT_EQ(measure(run.done()).exit_code, 1);  // nobody has seen it
  run.record().same_output_seen = true;
  EXPECT_EQ(measure(run.done()).exit_code, 0);
  run.record().same_output = "0.25 instead of 0.125";
  EXPECT_NE(measure(run.done()).sentence.find("0.25 instead of 0.125"), std::string::npos);
}

TEST(MeasureFails, WithTheWorstCode) {
  DrillRun run;
  add_kill(run, 30);
  run.record().interrupted = true;
  EXPECT_EQ(measure(run.done()).exit_code, 130);
  run.record().leftovers = {{.host = "h1", .what = "a process"}};
  EXPECT_EQ(measure(run.done()).exit_code, 4);
  run.record().interrupted = false;
  run.record().cut_short = "--stop";
  EXPECT_EQ(measure(run.done()).exit_code, 4);
  run.record().leftovers.clear();
  run.blow("kill", 50, run.rank(2)).end = BlowEnd::kSkipped;
  EXPECT_EQ(measure(run.done()).exit_code, 1);
  run.record().cut_short.clear();
  EXPECT_EQ(measure(run.done()).exit_code, 5);
}

}  // namespace

}  // namespace monarch
