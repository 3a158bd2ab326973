#include "supervisor/drill/core/measure.h"

#include <set>

#include "supervisor/drill/core/measure_blame.h"
#include "supervisor/drill/core/measure_bounds.h"
#include "supervisor/drill/core/measure_figures.h"
#include "supervisor/drill/core/measure_invariants.h"
#include "supervisor/drill/core/measure_lanes.h"
#include "supervisor/drill/core/measure_ledger.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

void put_false_positives(const Run& run, const Blame& blame, DrillReport& report) {
  const DrillRecord& record = *run.record;
  for (const JobEvent* event : blame.unexplained) {
    const bool of_control = event->time < record.control_to;
    if (of_control && run.planted(MeasureMutant::kControlUnwatched)) continue;
    report.false_positives_of_control += of_control ? 1U : 0U;
    report.false_positives.push_back(text(of_control ? "in control: " : "", line_of(record, *event)));
  }
  std::set<std::string> hosts;
  for (const DrillSample& sample : record.samples) {
    for (const auto& [name, phase] : sample.hosts) hosts.insert(name);
  }
  const double hours = between(record.control_from, record.ended).count_seconds() / 3600;
  if (hosts.empty() || hours <= 0 || record.control_from == WallTime{}) return;
  const auto many = static_cast<double>(report.false_positives.size());
  report.false_positives_per_host_hour = many / (hours * static_cast<double>(hosts.size()));
}

void put_ratio(const Run& run, DrillReport& report) {
  const DrillRecord& record = *run.record;
  if (!record.here || !record.peer) return;
  const bool by_wall = run.planted(MeasureMutant::kRatioByWall);
  const auto of = [by_wall](const CompareRun& one) {
    return static_cast<double>(by_wall ? one.rank_milliseconds : one.lost_rank_milliseconds);
  };
  if (of(*record.peer) > 0) report.ratio = of(*record.here) / of(*record.peer);
}

}  // namespace

DrillReport measure(const DrillRecord& record, MeasureMutant mutant) {
  DrillReport report;
  const Run run = run_of(record, mutant);
  const TimeSheet sheet = time_sheet(run);
  const Blame blame = explain(run, sheet);
  put_figures(run, blame, sheet, report);
  put_false_positives(run, blame, report);
  put_ratio(run, report);
  put_ledger(run, sheet, report);
  put_invariants(run, blame, allowed_leftovers(record), report);
  put_bounds(run, blame, report);
  put_lanes(run, blame, sheet, report);
  put_verdict(run, report);
  return report;
}

}  // namespace monarch::drill
