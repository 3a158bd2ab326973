#include "supervisor/drill/report/report_json.h"

#include <cmath>
#include <utility>

#include "supervisor/drill/core/faults.h"
#include "supervisor/drill/core/measure_run.h"
#include "supervisor/drill/report/record_json.h"
#include "transport/base/json.h"

namespace monarch::drill {

namespace {

// To a tenth of a millisecond.
double rounded(double value) { return std::round(value * 1e4) / 1e4; }
Json seconds_json(Duration d) { return Json(rounded(d.count_seconds())); }
Json seconds_json(const std::optional<Duration>& d) { return d ? seconds_json(*d) : Json(); }
Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

// Since the drill began.
class DrillClock {
 public:
  explicit DrillClock(WallTime started) : started_(started) {}
  Json at(WallTime when) const { return seconds_json(between(started_, when)); }
  Json maybe(const std::optional<WallTime>& when) const { return when ? at(*when) : Json(); }
  Json known(WallTime when) const { return when == WallTime{} ? Json() : at(when); }

 private:
  WallTime started_;
};

Json lines_json(const std::vector<std::string>& lines) {
  Json all = Json::array();
  for (const std::string& line : lines) all.append(line);
  return all;
}

Json spread_json(const Spread& spread) {
  if (spread.n == 0) return Json::object({{"n", 0}});
  return Json::object({{"n", spread.n},
                       {"p50", seconds_json(spread.p50)},
                       {"p95", seconds_json(spread.p95)},
                       {"max", seconds_json(spread.max)}});
}

Json kinds_json(const DrillReport& report) {
  Json kinds = Json::array();
  for (const ClassFigures& one : report.classes) {
    kinds.append(Json::object({{"kind", name_of(one.of)},
                               {"ttd", spread_json(one.ttd)},
                               {"ttf", spread_json(one.ttf)},
                               {"tts", spread_json(one.tts)},
                               {"ttr", spread_json(one.ttr)},
                               {"ours", spread_json(one.ours)}}));
  }
  return kinds;
}

std::string_view end_name(const Blow& blow, const FaultFigures& figures) {
  switch (blow.end) {
    case BlowEnd::kSkipped: return "skipped";
    case BlowEnd::kInert: return "inert";
    case BlowEnd::kEffective: break;
  }
  return figures.note.starts_with("inert") ? "inert" : "effective";
}

Json fault_json(const DrillClock& clock, const Blow& blow, const FaultFigures& figures) {
  const Fault* const row = find_fault(blow.fault);
  Json events = Json::array();
  for (const std::uint64_t number : figures.events) events.append(number);
  Json fault = Json::object({{"number", blow.number},
                             {"fault", blow.fault},
                             {"id", row == nullptr ? Json() : Json(row->id)},
                             {"kind", figures.of ? Json(name_of(*figures.of)) : Json()},
                             {"host", blow.target.host},
                             {"mesh", blow.target.mesh},
                             {"rank", blow.target.mesh.empty() ? Json() : Json(blow.target.rank)},
                             {"end", end_name(blow, figures)},
                             {"due", clock.known(blow.due)},
                             {"struck", clock.known(blow.struck_at)},
                             {"in_effect", clock.known(blow.seen_at)},
                             {"clock_error", seconds_json(blow.clock_error)},
                             {"for", seconds_json(blow.lasts)},
                             {"undone", clock.maybe(blow.undone_at)},
                             {"taken_back", blow.taken_back}});
  fault.set("needs_seeing", figures.needs_seeing);
  fault.set("seen", figures.seen);
  fault.set("seen_by", figures.seen_by.empty() ? Json() : Json(figures.seen_by));
  fault.set("ttd", seconds_json(figures.ttd));
  fault.set("ttf", seconds_json(figures.ttf));
  fault.set("tts", seconds_json(figures.tts));
  fault.set("ttr", seconds_json(figures.ttr));
  fault.set("ours", seconds_json(figures.ours));
  fault.set("redone_rank_milliseconds", figures.redone_rank_milliseconds);
  fault.set("gangs_started", figures.gangs_started);
  fault.set("gangs_expected", figures.gangs_expected);
  fault.set("stage", figures.stage);
  fault.set("note", figures.note);
  fault.set("events", std::move(events));
  return fault;
}

Json faults_json(const DrillClock& clock, const DrillRecord& record, const DrillReport& report) {
  Json faults = Json::array();
  for (std::size_t i = 0; i < record.blows.size() && i < report.faults.size(); ++i) {
    faults.append(fault_json(clock, record.blows[i], report.faults[i]));
  }
  return faults;
}

Json bounds_json(const DrillReport& report) {
  Json bounds = Json::array();
  for (const BoundResult& one : report.bounds) {
    bounds.append(Json::object({{"what", one.what},
                                {"bound", one.bound},
                                {"at_least", one.at_least},
                                {"value", optional_json(one.value)},
                                {"n", one.n},
                                {"met", one.met},
                                {"why", one.why}}));
  }
  return bounds;
}

Json invariants_json(const DrillReport& report) {
  Json invariants = Json::array();
  for (const InvariantResult& one : report.invariants) {
    invariants.append(Json::object({{"label", one.label},
                                    {"words", one.words},
                                    {"checks", one.checks},
                                    {"held", one.broken.empty()},
                                    {"broken", lines_json(one.broken)}}));
  }
  return invariants;
}

Json ledger_json(const DrillReport& report) {
  Json ledger = Json::object();
  for (std::size_t b = 0; b < kTimeBins; ++b) {
    ledger.set(std::string(name_of(static_cast<TimeBin>(b))), report.rank_milliseconds[b]);
  }
  ledger.set("unaccounted", report.unaccounted_rank_milliseconds);
  return ledger;
}

Json lanes_json(const DrillClock& clock, const DrillReport& report) {
  Json lanes = Json::array();
  for (const Lane& lane : report.lanes) {
    Json spans = Json::array();
    for (const LaneSpan& span : lane.spans) {
      spans.append(Json::array({clock.at(span.from), clock.at(span.to), span.bin ? Json(name_of(*span.bin)) : Json(),
                                Json(span.gang), Json(span.generation)}));
    }
    lanes.append(
        Json::object({{"host", lane.host}, {"role", lane.role}, {"quiet", lane.quiet}, {"spans", std::move(spans)}}));
  }
  return lanes;
}

Json curve_json(const DrillClock& clock, const DrillReport& report) {
  Json curve = Json::array();
  for (const CurvePoint& point : report.curve) {
    curve.append(Json::array({clock.at(point.at), Json(rounded(point.steps_per_second))}));
  }
  return curve;
}

Json leftovers_json(const DrillRecord& record) {
  Json left = Json::array();
  for (const DrillLeftover& one : record.leftovers) {
    left.append(Json::object({{"host", one.host}, {"what", one.what}}));
  }
  return left;
}

Json compare_json(const DrillRecord& record, const DrillReport& report) {
  if (!record.here || !record.peer) return {};
  const auto run = [](const CompareRun& one) {
    return Json::object(
        {{"lost_rank_milliseconds", one.lost_rank_milliseconds}, {"rank_milliseconds", one.rank_milliseconds}});
  };
  return Json::object(
      {{"here", run(*record.here)}, {"full_restart", run(*record.peer)}, {"ratio", optional_json(report.ratio)}});
}

Json control_json(const DrillClock& clock, const DrillRecord& record, const DrillReport& report) {
  return Json::object({{"from", clock.at(record.control_from)},
                       {"to", clock.at(record.control_to)},
                       {"steps_per_second", optional_json(report.baseline_steps_per_second)},
                       {"false_positives", report.false_positives_of_control}});
}

Json setup_json(const DrillClock& clock, const DrillRecord& record) {
  return Json::object({{"launcher", record.launcher},
                       {"command", lines_json(record.command)},
                       {"started", to_text(record.started)},
                       {"faults_to", clock.at(record.faults_to)},
                       {"ended", clock.at(record.ended)},
                       {"left_out", lines_json(record.left_out)},
                       {"cut_short", record.cut_short}});
}

}  // namespace

std::string report_json(const DrillRecord& record, const DrillReport& report) {
  const DrillClock clock(record.started);
  Json all = Json::object({{"v", 1},
                           {"type", "drill"},
                           {"verdict", name_of(report.verdict)},
                           {"exit_code", report.exit_code},
                           {"sentence", report.sentence},
                           {"drill", record.scenario.name},
                           {"seed", record.seed},
                           {"job", record.job_id},
                           {"versions", Json::object({{"monarch", record.monarch}})},
                           {"setup", setup_json(clock, record)},
                           {"control", control_json(clock, record, report)}});
  all.set("expect", bounds_json(report));
  all.set("faults", faults_json(clock, record, report));
  all.set("kinds", kinds_json(report));
  all.set("ledger", ledger_json(report));
  all.set("ettr", optional_json(report.ettr));
  all.set("goodput", optional_json(report.goodput));
  all.set("availability", optional_json(report.availability));
  all.set("precision", optional_json(report.precision));
  all.set("recall", optional_json(report.recall));
  all.set("mtbf", seconds_json(report.mtbf));
  all.set("false_positives", lines_json(report.false_positives));
  all.set("false_positives_per_host_hour", optional_json(report.false_positives_per_host_hour));
  all.set("invariants", invariants_json(report));
  all.set("leftovers", leftovers_json(record));
  all.set("compare", compare_json(record, report));
  all.set("curve", curve_json(clock, report));
  all.set("lanes", lanes_json(clock, report));
  all.set("record", record_fields_json(record));
  std::vector<DrillSample> kept;
  for (std::size_t i = 0; i < record.samples.size(); i += sample_stride(record)) kept.push_back(record.samples[i]);
  all.set("samples", samples_json(kept));
  all.set("events", events_json(record.events));
  all.set("commits", commits_json(record.events));
  return to_json(all) + "\n";
}

}  // namespace monarch::drill
