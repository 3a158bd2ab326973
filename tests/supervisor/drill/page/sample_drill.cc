#include "tests/supervisor/drill/page/sample_drill.h"

#include <algorithm>
#include <utility>

#include "transport/base/text.h"

namespace monarch::drill {

namespace {

constexpr std::int64_t kBegan = 1'700'000'000;

WallTime second(double at) { return {kBegan * 1'000'000'000 + static_cast<std::int64_t>(at * 1e9)}; }
Duration seconds(double length) { return Duration::nanoseconds(static_cast<std::int64_t>(length * 1e9)); }

struct SampleFault {
  std::string_view fault;
  FaultClass of;
  std::string_view seen_by;
  EventKind kind;
  double at;  // from the end of control
  double lasts;
  double ttd;
  double ours;
  double ttr;  // zero: nothing is started again
};

DrillRecord empty_record(std::uint32_t hosts) {
  DrillRecord record;
  record.scenario.name = "five-faults";
  record.seed = 42;
  record.job_id = "ddp-recover-1a2b";
  record.launcher = text("local:", hosts);
  record.monarch = "0.9.1";
  record.command = {"monarch", "drill", "configs/drills/five-faults.yaml", "--out", "my drills"};
  record.meshes = {{.name = "trainer", .ranks = hosts * 4, .ranks_per_gang = 4}};
  record.started = second(-20);
  record.control_from = second(-12);
  record.control_to = second(0);
  return record;
}

void add_fault(SampleDrill& drill, const SampleFault& made, std::string host, std::uint32_t gang) {
  const auto number = static_cast<std::uint32_t>(drill.record.blows.size()) + 1;
  Blow blow;
  blow.number = number;
  blow.fault = made.fault;
  blow.target = {
      .host = std::move(host), .mesh = "trainer", .rank = gang * 4 + 1, .gangs = {{.mesh = 0, .gang = gang}}};
  if (made.of == FaultClass::kHost || made.of == FaultClass::kSupervisor) blow.target.mesh.clear();
  if (made.of == FaultClass::kSupervisor) blow.target.host.clear();
  blow.due = blow.struck_at = second(made.at);
  blow.seen_at = second(made.at + 0.005);
  blow.lasts = seconds(made.lasts);
  if (made.lasts > 0) blow.undone_at = second(made.at + made.lasts);
  blow.end = BlowEnd::kEffective;
  FaultFigures figures;
  figures.number = number;
  figures.of = made.of;
  figures.needs_seeing = true;
  figures.seen = true;
  figures.seen_by = made.seen_by;
  figures.ttd = seconds(made.ttd);
  figures.gangs_started = figures.gangs_expected = made.ttr > 0 ? 1 : 0;
  if (made.ttr > 0) {
    figures.ttf = seconds(0.012);
    figures.tts = seconds(made.ours - made.ttd - 0.012);
    figures.ours = seconds(made.ours);
    figures.ttr = seconds(made.ttr);
    figures.redone_rank_milliseconds = 1400;
    figures.stage = "restart";
  }
  const auto say = [&](double after, EventKind kind, std::string message) {
    JobEvent event;
    event.number = drill.record.events.size() + 1;
    event.time = second(made.at + after);
    event.kind = kind;
    event.host = blow.target.host;
    event.message = std::move(message);
    figures.events.push_back(event.number);
    drill.record.events.push_back(std::move(event));
  };
  say(made.ttd, made.kind,
      text("gang ", gang, " of trainer: trainer/", gang * 4 + 1, " was killed by SIGSEGV [restart 1 of 4]"));
  if (made.ttr > 0) {
    say(made.ttd + 0.012, EventKind::kGangStarting, text("gang ", gang, " of trainer: generation 2, from step 412"));
    say(made.ours, EventKind::kGangRunning, text("gang ", gang, " of trainer: every rank was executed in 18 ms"));
    say(made.ttr, EventKind::kGangCaughtUp, "past step 412, where it was when it failed; 12 steps done again");
  }
  drill.record.blows.push_back(std::move(blow));
  drill.report.faults.push_back(std::move(figures));
}

// A gang's life on its host: work, and what its faults made of it.
void add_lane(SampleDrill& drill, const std::string& host, std::uint32_t gang, double end) {
  Lane lane{.host = host, .role = "rank", .quiet = true, .spans = {}};
  double at = -20;
  std::uint64_t generation = 1;
  const std::string name = text("trainer/", gang);
  const auto until = [&](double to, std::optional<TimeBin> bin) {
    lane.spans.push_back({.from = second(at), .to = second(to), .bin = bin, .gang = name, .generation = generation});
    at = to;
  };
  for (std::size_t i = 0; i < drill.record.blows.size(); ++i) {
    const Blow& blow = drill.record.blows[i];
    const FaultFigures& figures = drill.report.faults[i];
    if (blow.target.host != host || !figures.ttr) continue;
    lane.quiet = false;
    const double struck = static_cast<double>(blow.struck_at.nanoseconds_since_epoch) / 1e9 - kBegan;
    until(std::max(at, struck - 0.05), TimeBin::kNew);
    until(struck + figures.ttd->count_seconds(), TimeBin::kStill);
    until(at + 0.012, TimeBin::kDeciding);
    ++generation;
    until(struck + figures.ours->count_seconds(), TimeBin::kLaunching);
    until(struck + figures.ttr->count_seconds() * 0.8, TimeBin::kStarting);
    until(struck + figures.ttr->count_seconds(), TimeBin::kRedone);
    if (blow.fault == "power-loss") break;
  }
  const bool is_lost = !drill.record.blows.empty() && generation > 1 && host == "v5";
  until(end, is_lost ? std::nullopt : std::optional(TimeBin::kNew));
  drill.report.lanes.push_back(std::move(lane));
}

void finish(SampleDrill& drill, std::uint32_t hosts, double end) {
  drill.record.faults_to = second(end);
  drill.record.ended = second(end + 2);
  DrillReport& report = drill.report;
  report.verdict = DrillVerdict::kPassed;
  report.effective = report.needed_seeing = report.seen = static_cast<std::uint32_t>(drill.record.blows.size());
  report.lanes.push_back({.host = "", .role = "supervisor", .quiet = false, .spans = {}});
  report.lanes.back().spans = {{.from = second(-20), .to = second(end * 0.8), .bin = TimeBin::kNew},
                               {.from = second(end * 0.8), .to = second(end * 0.8 + 0.4), .bin = TimeBin::kStill},
                               {.from = second(end * 0.8 + 0.4), .to = second(end), .bin = TimeBin::kNew}};
  for (std::uint32_t host = 0; host < hosts; ++host) add_lane(drill, text("v", host + 1), host, end);
  for (double at = -12; at < end; ++at) {
    double rate = 80;
    for (const Blow& blow : drill.record.blows) {
      const double since = at - (static_cast<double>(blow.struck_at.nanoseconds_since_epoch) / 1e9 - kBegan);
      if (since > -1 && since < 2) rate = std::max(0.0, rate - 80.0 / hosts);
    }
    report.curve.push_back({.at = second(at), .steps_per_second = rate});
  }
  report.baseline_steps_per_second = 80;
  const auto all = static_cast<std::int64_t>(end * hosts * 4000);
  report.rank_milliseconds = {all * 90 / 100, all * 3 / 100, all * 2 / 100, all / 100, 0, all / 100, all * 3 / 100, 0};
  report.ettr = 0.9;
  report.goodput = 0.91;
  report.availability = 0.97;
  report.precision = report.recall = 1;
  report.mtbf = seconds(end / static_cast<double>(std::max<std::size_t>(1, drill.record.blows.size())));
  for (std::size_t of = 0; of < kFaultClassNames.size(); ++of) {
    ClassFigures figures{.of = static_cast<FaultClass>(of), .ttd = {}, .ttf = {}, .tts = {}, .ttr = {}, .ours = {}};
    for (const FaultFigures& fault : report.faults) {
      if (fault.of != figures.of) continue;
      for (auto [spread, duration] : {std::pair(&figures.ttd, fault.ttd), std::pair(&figures.ttr, fault.ttr),
                                      std::pair(&figures.ours, fault.ours)}) {
        if (!duration) continue;
        ++spread->n;
        spread->p50 = spread->p95 = spread->max = std::max(spread->max, *duration);
      }
    }
    if (figures.ttd.n > 0) report.classes.push_back(figures);
  }
  report.bounds = {
      {.what = "seen", .bound = 1, .value = 1, .n = report.seen, .met = true, .why = "all of them", .at_least = true},
      {.what = "ours_p95.process",
       .bound = 1,
       .value = 0.09,
       .n = 2,
       .met = true,
       .why = "",
       .unit = MeasureUnit::kSeconds},
      {.what = "ttr_p95.host", .bound = 8, .value = 6.1, .n = 1, .met = true, .why = "", .unit = MeasureUnit::kSeconds},
      {.what = "false_positives",
       .bound = 0,
       .value = 0,
       .n = 12,
       .met = true,
       .why = "",
       .unit = MeasureUnit::kCount}};
  report.invariants = {{.label = "I4", .words = "generations of a rank only grow", .checks = 24, .broken = {}},
                       {.label = "I20", .words = "the committed step never goes back", .checks = 57, .broken = {}}};
  report.sentence = "drill five-faults: passed, 5 faults seen, 0 inert";
}

}  // namespace

SampleDrill five_faults() {
  SampleDrill drill{.record = empty_record(6), .report = {}};
  add_fault(drill, {"segv", FaultClass::kProcess, "gang.failed", EventKind::kGangFailed, 4, 0, 0.005, 0.05, 1.3}, "v1",
            0);
  add_fault(drill, {"kill", FaultClass::kProcess, "gang.failed", EventKind::kGangFailed, 11.5, 0, 0.007, 0.06, 1.4},
            "v3", 2);
  add_fault(drill, {"hang", FaultClass::kHang, "rank.hung", EventKind::kRankHung, 20, 12, 3.2, 3.3, 6.7}, "v2", 1);
  add_fault(drill, {"power-loss", FaultClass::kHost, "host.lost", EventKind::kHostLost, 36, 0, 4.1, 6.1, 7.6}, "v5", 4);
  add_fault(drill,
            {"supervisor-kill", FaultClass::kSupervisor, "supervisor.returned", EventKind::kSupervisorReturned, 48, 0,
             0.4, 0, 0},
            "", 0);
  finish(drill, 6, 60);
  drill.report.lanes.push_back(
      {.host = "v7", .role = "spare", .quiet = true, .spans = {{.from = second(-20), .to = second(60)}}});
  drill.record.here = CompareRun{.lost_rank_milliseconds = 44'000, .rank_milliseconds = 576'000};
  drill.record.peer = CompareRun{.lost_rank_milliseconds = 120'000, .rank_milliseconds = 640'000};
  drill.report.ratio = 0.37;
  return drill;
}

SampleDrill many_faults(std::uint32_t faults, std::uint32_t hosts) {
  SampleDrill drill{.record = empty_record(hosts), .report = {}};
  for (std::uint32_t i = 0; i < faults; ++i) {
    const std::uint32_t host = i * 7 % hosts;
    add_fault(drill,
              {i % 3 == 0 ? "segv" : "kill", FaultClass::kProcess, "gang.failed", EventKind::kGangFailed,
               5.0 + i * 20 + i * 13 % 9, 0, 0.003 * (1 + i % 7), 0.05 + 0.003 * (1 + i % 11), 1.1 + 0.1 * (i % 9)},
              text("v", host + 1), host);
  }
  finish(drill, hosts, 30.0 + faults * 20);
  return drill;
}

SampleDrill hostile_drill(std::string_view bytes) {
  SampleDrill drill = five_faults();
  const std::string said(bytes);
  DrillRecord& record = drill.record;
  DrillReport& report = drill.report;
  record.scenario.name = record.job_id = record.launcher = record.monarch = record.cut_short = said;
  record.command = {said, said};
  record.left_out = {said};
  record.leftovers = {{.host = said, .what = said}};
  record.same_output = said;
  record.same_output_seen = true;
  for (JobEvent& event : record.events) event.host = event.mesh = event.message = said;
  for (Blow& blow : record.blows) {
    blow.fault = blow.why = said;
    blow.target.host = blow.target.mesh = said;
  }
  record.blows[0].end = BlowEnd::kInert;
  record.blows[1].end = BlowEnd::kSkipped;
  record.blows[2].taken_back = false;
  for (FaultFigures& figures : report.faults) figures.note = figures.seen_by = figures.stage = said;
  for (BoundResult& bound : report.bounds) {
    bound.what = bound.why = said;
    bound.met = false;
    bound.value.reset();
  }
  for (InvariantResult& invariant : report.invariants) {
    invariant.label = invariant.words = said;
    invariant.broken = {said};
  }
  for (Lane& lane : report.lanes) {
    lane.host = lane.role = said;
    for (LaneSpan& span : lane.spans) span.gang = said;
  }
  report.false_positives = {said};
  report.sentence = said;
  report.verdict = DrillVerdict::kBroken;
  return drill;
}

}  // namespace monarch::drill
