#include "supervisor/drill/core/measure.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>

#include <gtest/gtest.h>

#include "supervisor/drill/core/measure_figures.h"
#include "tests/supervisor/drill/core/drill_run.h"

namespace monarch {

namespace {

using namespace monarch::drill;

std::int64_t of_bin(const DrillReport& report, TimeBin bin) {
  return report.rank_milliseconds[static_cast<std::size_t>(bin)];
}

TEST(Measure, TakesTheNearestRank) {
  std::vector<Duration> values;
  for (int i = 20; i > 0; --i) values.push_back(Duration::seconds(i));
  const Spread spread = spread_of(values);
  EXPECT_EQ(spread.n, 20U);
  EXPECT_EQ(spread.p50, Duration::seconds(10));
  EXPECT_EQ(spread.p95, Duration::seconds(19));
  EXPECT_EQ(spread.max, Duration::seconds(20));
  EXPECT_EQ(spread_of({Duration::seconds(7)}).p95, Duration::seconds(7));
  EXPECT_EQ(spread_of({}).n, 0U);
}

TEST(Measure, SaysOfAKillWhatItCost) {
  DrillRun run;
  add_kill(run, 30);
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 0) << report.sentence;
  EXPECT_EQ(report.sentence, "drill smoke: passed, 1 fault seen, 0 inert, ours p95 0.10 s (process)");
  ASSERT_EQ(report.faults.size(), 1U);
  const FaultFigures& kill = report.faults[0];
  EXPECT_EQ(kill.ttd, Duration::milliseconds(50));
  EXPECT_EQ(kill.ttf, Duration::milliseconds(20));
  EXPECT_EQ(kill.tts, Duration::milliseconds(30));
  EXPECT_EQ(kill.ours, Duration::milliseconds(100));
  EXPECT_EQ(kill.ttr, Duration::milliseconds(1500));  // by the rank's own word, not by when that was told
  EXPECT_EQ(kill.redone_rank_milliseconds, 1000);
  EXPECT_EQ(kill.gangs_started, 1U);
  EXPECT_EQ(kill.gangs_expected, 1U);
  EXPECT_EQ(kill.stage, "restart");
  EXPECT_EQ(kill.note, "");
  EXPECT_EQ(kill.events.size(), 5U);
  EXPECT_TRUE(report.false_positives.empty());
  EXPECT_EQ(report.precision, 1.0);
  EXPECT_EQ(report.recall, 1.0);
}

TEST(Measure, AddsUpWhereTheTimeWent) {
  DrillRun run;
  add_kill(run, 30);
  const DrillReport report = measure(run.done());
  EXPECT_EQ(of_bin(report, TimeBin::kStill), 100);
  EXPECT_EQ(of_bin(report, TimeBin::kDeciding), 40);
  EXPECT_EQ(of_bin(report, TimeBin::kLaunching), 60);
  EXPECT_EQ(of_bin(report, TimeBin::kStarting), 1800);
  EXPECT_EQ(of_bin(report, TimeBin::kRedone), 1000);
  EXPECT_EQ(of_bin(report, TimeBin::kNew), 157'000);  // of 160 s of four ranks
  EXPECT_EQ(report.unaccounted_rank_milliseconds, 0);
  EXPECT_NEAR(*report.ettr, 157.0 / 160, 1e-9);
  EXPECT_NEAR(*report.baseline_steps_per_second, 20, 1e-9);
  EXPECT_NEAR(*report.goodput, 785.0 / 800, 0.003);
  EXPECT_NEAR(*report.availability, (40 - 0.05) / 40, 1e-9);
  EXPECT_EQ(report.mtbf, Duration::seconds(40));
}

TEST(Measure, TakesAHostThatIsLostTogetherWithWhatFollows) {
  DrillRun run;
  run.blow("power-loss", 30, run.host("h1"));
  run.event(31, EventKind::kHostSuspect, "h1");
  run.event(35, EventKind::kHostLost, "h1").details = {{"why", "silent for 5s"}, {"silent_ms", "5000"}};
  run.event(35.1, EventKind::kHostReplaced, "h3").details = {{"replaces", "h1"}, {"slot", "0"}};
  run.move(0, "h3");
  run.recovers(
      0, 30, {.failed = 35.01, .started = 38, .running = 38.2, .first_step = 39, .caught_up = 40, .remedy = "replace"});
  run.event(50, EventKind::kHostFailed, "h1");  // launched again, in vain
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 0) << report.sentence;
  const FaultFigures& loss = report.faults[0];
  EXPECT_EQ(loss.ttd, Duration::seconds(5));  // a suspicion is no verdict
  EXPECT_EQ(loss.seen_by, "host.lost");
  EXPECT_EQ(loss.ours, Duration::milliseconds(8200));
  EXPECT_EQ(loss.stage, "replace");
  ASSERT_EQ(report.classes.size(), 1U);
  EXPECT_EQ(report.classes[0].of, FaultClass::kHost);
  const auto lane =
      std::find_if(report.lanes.begin(), report.lanes.end(), [](const Lane& one) { return one.host == "h3"; });
  ASSERT_NE(lane, report.lanes.end());
  EXPECT_EQ(lane->role, "rank");
  EXPECT_FALSE(lane->quiet);
  EXPECT_EQ(lane->spans.back().bin, TimeBin::kNew);
  EXPECT_EQ(lane->spans.back().generation, 2U);
}

TEST(Measure, SeesAHangThatGoesOnAndOneThatIsEnded) {
  DrillRun run;
  run.blow("hang", 25, run.rank(0), 1);
  run.rank_event(25.1, EventKind::kRankStopped, 0);
  run.rank_event(26.1, EventKind::kRankContinued, 0);
  run.blow("hang", 40, run.rank(3), 8);
  run.rank_event(40.1, EventKind::kRankStopped, 3);
  run.rank_event(43, EventKind::kRankHung, 3);
  run.recovers(1, 40, {.failed = 43.1, .started = 43.2, .running = 43.3, .first_step = 44, .caught_up = 45});
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 0) << report.sentence;
  EXPECT_EQ(report.faults[0].gangs_expected, 0U);
  EXPECT_EQ(report.faults[0].ours, Duration::milliseconds(100));
  EXPECT_FALSE(report.faults[0].ttr);
  EXPECT_EQ(report.faults[1].gangs_expected, 1U);
  EXPECT_EQ(report.faults[1].ours, Duration::milliseconds(3300));
}

TEST(Measure, KnowsOfEachMeshAfterHowLongOneThatIsStoppedIsStartedAgain) {
  for (const Duration hang : {Duration::seconds(2), Duration::seconds(20), Duration::forever()}) {
    DrillRun run;
    run.blow("hang", 40, run.rank(3), 8);
    run.rank_event(40.1, EventKind::kRankStopped, 3);
    DrillRecord record = run.done();
    record.meshes[0].hang = hang;
    EXPECT_EQ(measure(record).faults[0].gangs_expected, hang == Duration::seconds(2) ? 1U : 0U);
  }
}

TEST(Measure, LetsADaemonThatStandsStillCostItsHostWhereThatIsSoonGivenUp) {
  for (const Duration lost_after : {Duration::seconds(2), Duration::seconds(5)}) {
    DrillRun run;
    run.blow("daemon-hang", 40, run.host("h1"), 4);
    run.event(40.5, EventKind::kHostSuspect, "h1");
    run.event(42, EventKind::kHostLost, "h1");
    run.recovers(0, 40, {.failed = 42, .started = 43.2, .running = 43.3, .first_step = 44, .caught_up = 45});
    run.record().times.lost_after = lost_after;
    const DrillReport report = measure(run.done());
    EXPECT_EQ(report.faults[0].ttd, Duration::milliseconds(500));
    EXPECT_NE(report.sentence.find("1 fault seen, 0 inert"), std::string::npos) << report.sentence;
    EXPECT_EQ(report.faults[0].note.empty(), lost_after == Duration::seconds(2)) << report.faults[0].note;
  }
}

TEST(Measure, SeesASupervisorReturnAndOneThatStoodStill) {
  DrillRun run;
  run.blow("supervisor-kill", 30, {});
  run.event(30.4, EventKind::kSupervisorReturned);
  run.event(30.5, EventKind::kSupervisorAdopted);
  run.blow("supervisor-hang", 45, {}, 2);
  run.event(47.1, EventKind::kSupervisorStoodStill);
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 0) << report.sentence;
  EXPECT_EQ(report.faults[0].ours, Duration::milliseconds(400));
  EXPECT_EQ(report.faults[1].ttd, Duration::milliseconds(2100));
  EXPECT_EQ(report.faults[1].ours, Duration::milliseconds(100));  // while it is stopped it can do nothing
  ASSERT_FALSE(report.lanes.empty());
  EXPECT_EQ(report.lanes[0].role, "supervisor");
  EXPECT_EQ(report.lanes[0].spans.size(), 5U);
}

TEST(Measure, CountsGangsOfAHostAndNotRanks) {
  DrillRun run;
  BlowTarget both = run.host("h1");
  both.gangs = {{0, 0}, {0, 1}};
  run.blow("keeper-kill", 30, both);
  for (std::uint32_t g = 0; g < 2; ++g) {
    run.recovers(g, 30,
                 {.failed = 30.1 + g,
                  .started = 32 + g * 1.0,
                  .running = 33 + g * 1.0,
                  .first_step = 34 + g * 1.0,
                  .caught_up = 35 + g * 1.0});
  }
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 0) << report.sentence;
  EXPECT_EQ(report.faults[0].gangs_started, 2U);
  EXPECT_EQ(report.faults[0].ours, Duration::seconds(4));  // until the last runs
  EXPECT_EQ(report.faults[0].ttr, Duration::seconds(6));
  EXPECT_EQ(report.faults[0].redone_rank_milliseconds, 4000);
}

TEST(Measure, CallsALimitThatWasNeverFeltInert) {
  DrillRun run;
  run.blow("no-files", 30, run.rank(0), 5);
  for (int i = 0; i < 20; ++i) run.blow("flood", 31 + i, run.rank(0), 0.5);
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.inert, 1U);
  EXPECT_EQ(report.faults[0].note, "inert: it was in effect, and was never felt");
  EXPECT_EQ(report.exit_code, 0) << report.sentence;
}

TEST(Measure, LaysWhatComesAfterASecondBlowToThat) {
  DrillRun run;
  run.blow("kill", 30, run.rank(1));
  run.fail(0, 30, 30.05);
  run.start(0, 30.07);
  run.gang_event(30.1, EventKind::kGangRunning, 0);
  run.bin(0, 30.1, TimeBin::kStarting);
  run.blow("kill", 30.5, run.rank(0));
  run.recovers(0, 30.5, {.failed = 30.6, .started = 30.7, .running = 30.8, .first_step = 32, .caught_up = 33});
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 0) << report.sentence;
  EXPECT_EQ(report.faults[0].ours, Duration::milliseconds(100));
  EXPECT_FALSE(report.faults[0].ttr);
  EXPECT_EQ(report.faults[1].ours, Duration::milliseconds(300));
  EXPECT_EQ(report.faults[1].ttr, Duration::milliseconds(2500));
}

TEST(Measure, AsksSamplesHowFarItWasWhereItsHostTookThatAlong) {
  DrillRun run;
  add_kill(run, 30);
  std::vector<JobEvent>& events = run.record().events;
  std::erase_if(events, [](const JobEvent& event) { return event.kind == EventKind::kGangCaughtUp; });
  for (JobEvent& event : events) {
    std::erase_if(event.details, [](const auto& detail) { return detail.first == "furthest"; });
  }
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.exit_code, 0) << report.sentence;
  EXPECT_EQ(report.faults[0].ttr, Duration::milliseconds(1750));  // not once it was ready
}

TEST(Measure, AsksSamplesWhereAStartKnowsAnOlderStep) {
  DrillRun run;
  add_kill(run, 30);
  for (JobEvent& event : run.record().events) {
    if (event.kind == EventKind::kGangCaughtUp) event.time = at_second(30.2);  // past what it was told of
    for (auto& detail : event.details) {
      if (detail.first == "furthest") detail.second = "7";
    }
  }
  EXPECT_EQ(measure(run.done()).faults[0].ttr, Duration::milliseconds(1750));
}

TEST(Measure, BlamesADaemonsStartThatNoBlowExplains) {
  DrillRun run;
  run.blow("daemon-kill", 25, run.host("h1"));
  run.event(25.1, EventKind::kHostDaemon, "h1").details = {{"start", "2"}};
  EXPECT_EQ(measure(run.done()).exit_code, 0);
  run.event(55, EventKind::kHostDaemon, "h1").details = {{"start", "2"}};
  EXPECT_EQ(measure(run.done()).exit_code, 1) << "also where it is told a second time";
}

TEST(Measure, BelievesTheQuickestAnswersOfTheLedger) {
  DrillRun run;
  add_kill(run, 30);
  DrillRecord record = run.done();
  for (std::size_t i = 0; i < record.samples.size(); ++i) {
    const auto late = static_cast<std::int64_t>(i * 37 % 120) * 1'000'000;
    record.samples[i].at.nanoseconds_since_epoch += late;
  }
  const DrillReport report = measure(record);
  EXPECT_EQ(report.exit_code, 0) << report.sentence;
  EXPECT_LT(std::abs(report.unaccounted_rank_milliseconds), 80);
}

TEST(Measure, ShowsTheHostsOfAGangThatSpansThem) {
  DrillRun run;
  for (JobEvent& event : run.record().events) {
    for (auto& detail : event.details) {
      if (detail.first == "hosts" && detail.second == "h1") detail.second = "h[1-12]";
    }
  }
  const DrillReport report = measure(run.done());
  EXPECT_EQ(report.lanes.size(), 13U);  // of the supervisor, too
  const auto lane =
      std::find_if(report.lanes.begin(), report.lanes.end(), [](const Lane& l) { return l.host == "h12"; });
  ASSERT_NE(lane, report.lanes.end());
  EXPECT_EQ(lane->spans.back().gang, "trainer/0");
  EXPECT_TRUE(lane->quiet);
}

TEST(Measure, IsQuickForManyFaultsOfManyRanks) {
  DrillRun run(32, 620);
  for (std::uint32_t i = 0; i < 60; ++i) add_kill(run, 25 + i * 9.5, i % 64);
  for (int i = 0; i < 9'500; ++i) {
    run.gang_event(20 + i * 0.06, EventKind::kCheckpointCommitted, static_cast<std::uint32_t>(i % 32))
        .details.emplace_back("step", text(i));
  }
  const DrillRecord record = run.done();
  const std::clock_t before = std::clock();
  const DrillReport report = measure(record);
  const double seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  RecordProperty("milliseconds", static_cast<int>(seconds * 1000));
  EXPECT_EQ(report.seen, 60U);
  EXPECT_LT(seconds, 4);  // of a processor, under a sanitizer
}

}  // namespace

}  // namespace monarch
