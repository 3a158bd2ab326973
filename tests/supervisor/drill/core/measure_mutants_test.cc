// Each fault that is planted into the measure turns the exit code of one record, to the better or to the worse.

#include <string>

#include <gtest/gtest.h>

#include "supervisor/drill/core/measure.h"
#include "tests/supervisor/drill/core/drill_run.h"

namespace monarch {

namespace {

using namespace monarch::drill;

struct Planted {
  DrillRecord record;
  int right = 0;
  int wrong = 0;
};

void expect(DrillRun& run, Measure measure, std::optional<FaultClass> of, double value) {
  run.record().scenario.expect.push_back({.measure = measure, .of = of, .value = value, .place = {}});
}

// A job that did well, and one that did not.
Planted flattered(DrillRun& run, int right) { return {run.done(), right, 0}; }
Planted blamed(DrillRun& run, int wrong) { return {run.done(), 0, wrong}; }

Planted planted_into_blame(MeasureMutant mutant) {
  DrillRun run;
  switch (mutant) {
    case MeasureMutant::kAnyTarget:
      run.blow("kill", 30, run.rank(0));
      run.recovers(1, 30, {.failed = 30.1, .started = 30.2, .running = 30.3, .first_step = 31, .caught_up = 32});
      return flattered(run, 1);
    case MeasureMutant::kBlameByTime:
      add_kill(run, 30);
      run.event(32, EventKind::kHostSuspect, "h2");
      return flattered(run, 1);
    case MeasureMutant::kNeverRecovered:
      add_kill(run, 30);
      run.recovers(0, 45, {.failed = 45.1, .started = 45.2, .running = 45.3, .first_step = 46, .caught_up = 47});
      return flattered(run, 1);
    case MeasureMutant::kOwnQuarantine:
      add_kill(run, 25, 0);
      add_kill(run, 40, 1);
      run.event(40.1, EventKind::kHostQuarantined, "h1");
      return flattered(run, 4);
    case MeasureMutant::kControlUnwatched:
      run.event(15, EventKind::kHostSuspect, "h2");
      add_kill(run, 30);
      return flattered(run, 1);
    default: ADD_FAILURE() << "no record for this one"; return {};
  }
}

Planted planted_into_figures(MeasureMutant mutant) {
  DrillRun run;
  switch (mutant) {
    case MeasureMutant::kFromTheLook: {
      run.blow("kill", 30, run.rank(1)).seen_at = at_second(31.5);
      run.recovers(0, 30, {.failed = 31.6, .started = 31.7, .running = 31.8, .first_step = 33, .caught_up = 34});
      expect(run, Measure::kOursP95, FaultClass::kProcess, 1);
      return flattered(run, 1);
    }
    case MeasureMutant::kMeanForP95:
      add_kill(run, 25);
      add_kill(run, 30);
      run.blow("kill", 40, run.rank(1));
      run.recovers(0, 40, {.failed = 41.6, .started = 41.7, .running = 41.8, .first_step = 43, .caught_up = 44});
      expect(run, Measure::kOursP95, FaultClass::kProcess, 1);
      return flattered(run, 1);
    case MeasureMutant::kRedoneIsNew:
      add_kill(run, 30);
      expect(run, Measure::kEttr, {}, 157.5 / 160);
      return flattered(run, 1);
    case MeasureMutant::kNoStill:
      run.blow("power-loss", 30, run.host("h1"));
      run.recovers(0, 30, {.failed = 35, .started = 38, .running = 39, .first_step = 40, .caught_up = 41});
      return blamed(run, 4);
    case MeasureMutant::kBlastByRanks: add_kill(run, 30); return blamed(run, 1);
    case MeasureMutant::kRatioByWall:
      add_kill(run, 30);
      expect(run, Measure::kRatio, {}, 0.2);
      run.record().here = {.lost_rank_milliseconds = 3000, .rank_milliseconds = 160'000};
      run.record().peer = {.lost_rank_milliseconds = 40'000, .rank_milliseconds = 200'000};
      return blamed(run, 1);
    default: return planted_into_blame(mutant);
  }
}

Planted planted_into(MeasureMutant mutant) {
  DrillRun run;
  add_kill(run, 30);
  switch (mutant) {
    case MeasureMutant::kNothingPasses: expect(run, Measure::kTtrP95, FaultClass::kHost, 5); return flattered(run, 1);
    case MeasureMutant::kInertSurvives:
      run.blow("kill", 50, run.rank(2)).end = BlowEnd::kInert;
      return flattered(run, 5);
    case MeasureMutant::kSkippedForgotten:
      run.blow("kill", 50, run.rank(2)).end = BlowEnd::kSkipped;
      return flattered(run, 5);
    case MeasureMutant::kLeftoversHere:
      run.record().leftovers = {{.host = "h2", .what = "a process"}};
      return flattered(run, 4);
    case MeasureMutant::kUndoUnasked: run.blow("slow", 50, run.rank(2), 2).taken_back = false; return flattered(run, 4);
    case MeasureMutant::kSameGeneration:
      for (JobEvent& event : run.record().events) event.generation = 1;
      return flattered(run, 4);
    case MeasureMutant::kUnrecoveredPasses:
      run.blow("kill", 50, run.rank(2));
      run.fail(1, 50, 50.1);
      return flattered(run, 1);
    case MeasureMutant::kCommitsOfAll:
      run.gang_event(40, EventKind::kCheckpointCommitted, 0).details.emplace_back("step", "120");
      run.gang_event(41, EventKind::kCheckpointCommitted, 1).details.emplace_back("step", "110");
      return blamed(run, 4);
    default: return planted_into_figures(mutant);
  }
}

TEST(MeasureMutants, AreAllCaught) {
  for (int i = 1; i <= static_cast<int>(kLastMeasureMutant); ++i) {
    const auto mutant = static_cast<MeasureMutant>(i);
    const Planted planted = planted_into(mutant);
    const DrillReport right = measure(planted.record);
    const DrillReport wrong = measure(planted.record, mutant);
    EXPECT_EQ(right.exit_code, planted.right) << i << ": " << right.sentence;
    EXPECT_EQ(wrong.exit_code, planted.wrong) << i << ": " << wrong.sentence;
  }
}

}  // namespace

}  // namespace monarch
