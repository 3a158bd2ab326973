#include "supervisor/drill/core/measure_ledger.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "transport/base/text.h"

namespace monarch::drill {

namespace {

constexpr double kMostUnaccounted = 0.001;  // of all rank-seconds
constexpr double kOffMilliseconds = 20;     // of a rank: parts are in whole ones, and no answer comes at once
constexpr Duration kAround = Duration::seconds(2);
constexpr double kMostNanoseconds = 4e18;
constexpr std::size_t kMostPoints = 600;  // of the curve

double milliseconds(Duration d) { return static_cast<double>(d.count_nanoseconds()) / 1e6; }

std::size_t bin_place(TimeBin bin) { return static_cast<std::size_t>(bin); }

RankTimes times_of(const Run& run, const DrillSample::Mesh& mesh) {
  RankTimes times{};
  for (const auto& [name, spent] : mesh.rank_milliseconds) {
    for (std::size_t b = 0; b < kTimeBins; ++b) {
      auto bin = static_cast<TimeBin>(b);
      if (name_of(bin) != name) continue;
      if (bin == TimeBin::kStill && run.planted(MeasureMutant::kNoStill)) continue;
      if (bin == TimeBin::kRedone && run.planted(MeasureMutant::kRedoneIsNew)) bin = TimeBin::kNew;
      times[bin_place(bin)] += static_cast<double>(spent);
    }
  }
  return times;
}

TimeCut cut_of(const Run& run, const DrillSample& sample) {
  TimeCut cut{.at = time_of(sample), .meshes = {}, .steps = {}};
  cut.meshes.resize(run.record->meshes.size());
  cut.steps.resize(run.gangs.size());
  for (std::size_t m = 0; m < cut.meshes.size() && m < sample.meshes.size(); ++m) {
    cut.meshes[m] = times_of(run, sample.meshes[m]);
  }
  for (std::size_t g = 0; g < run.gangs.size(); ++g) {
    const RunGang& gang = run.gangs[g];
    if (gang.mesh >= sample.meshes.size()) continue;
    const auto& steps = sample.meshes[gang.mesh].steps;
    if (gang.number < steps.size() && steps[gang.number]) cut.steps[g] = static_cast<double>(*steps[gang.number]);
  }
  return cut;
}

TimeCut between_cuts(const TimeCut& a, const TimeCut& b, WallTime at) {
  const double all = milliseconds(between(a.at, b.at));
  const double part = all > 0 ? milliseconds(between(a.at, at)) / all : 0;
  TimeCut cut = a;
  cut.at = at;
  for (std::size_t m = 0; m < cut.meshes.size(); ++m) {
    for (std::size_t i = 0; i < kTimeBins; ++i) cut.meshes[m][i] += (b.meshes[m][i] - a.meshes[m][i]) * part;
  }
  for (std::size_t g = 0; g < cut.steps.size(); ++g) {
    if (!b.steps[g]) continue;
    // A step that was never named before lies at the beginning.
    const double before = cut.steps[g].value_or(0);
    cut.steps[g] = before + (*b.steps[g] - before) * part;
  }
  return cut;
}

struct NewSteps {
  double steps = 0;
  bool any = false;
};
NewSteps new_steps(const Run& run, const TimeCut& from, const TimeCut& to) {
  NewSteps found;
  for (std::size_t g = 0; g < run.gangs.size(); ++g) {
    if (run.gangs[g].sidecar || !to.steps[g]) continue;
    found.any = true;
    found.steps += std::max(*to.steps[g] - from.steps[g].value_or(0), 0.0);
  }
  return found;
}

// Until each gang was over.
double requested(const Run& run, std::uint32_t mesh, WallTime from, WallTime to) {
  double sum = 0;
  for (const RunGang& gang : run.gangs) {
    if (gang.mesh != mesh) continue;
    const WallTime end = gang.end ? std::clamp(*gang.end, from, to) : to;
    sum += milliseconds(between(from, end)) * gang.ranks;
  }
  return sum;
}

double all_parts(const TimeCut& cut, std::uint32_t mesh) {
  return std::accumulate(cut.meshes[mesh].begin(), cut.meshes[mesh].end(), 0.0);
}

// The surplus of a mesh's parts over the time since the first sample. The quickest of the answers around a time says it
// best: a sample's time is when its answer was there.
double surplus_around(const Run& run, const TimeSheet& sheet, std::uint32_t mesh, const TimeCut& middle) {
  const WallTime base = sheet.samples.front().at;
  const auto first =
      std::lower_bound(sheet.samples.begin(), sheet.samples.end(), later(middle.at, Duration::zero() - kAround),
                       [](const TimeCut& cut, WallTime time) { return cut.at < time; });
  double best = all_parts(middle, mesh) - requested(run, mesh, base, middle.at);
  for (auto cut = first; cut != sheet.samples.end() && cut->at <= later(middle.at, kAround); ++cut) {
    best = std::max(best, all_parts(*cut, mesh) - requested(run, mesh, base, cut->at));
  }
  return best;
}

InvariantResult ledger_holds(const Run& run, const TimeSheet& sheet, const TimeCut& from, const TimeCut& to,
                             DrillReport& report) {
  InvariantResult ledger{.label = "I-ledger",
                         .words = "the parts of each mesh's time add up to the whole, but for 1 in 1,000",
                         .checks = 0,
                         .broken = {}};
  double missing = 0;
  for (std::uint32_t m = 0; m < from.meshes.size(); ++m) {
    ++ledger.checks;
    const double whole = requested(run, m, from.at, to.at);
    const double lacks = surplus_around(run, sheet, m, from) - surplus_around(run, sheet, m, to);
    missing += lacks;
    const double off = run.record->meshes[m].ranks * kOffMilliseconds;
    if (std::abs(lacks) <= whole * kMostUnaccounted + off) continue;
    ledger.broken.push_back(text(run.record->meshes[m].name, ": of ", std::llround(whole), " rank-milliseconds ",
                                 std::llround(std::abs(lacks)), lacks > 0 ? " are missing" : " are too many"));
  }
  report.unaccounted_rank_milliseconds = std::llround(missing);
  return ledger;
}

void put_sums(const Run& run, const TimeCut& from, const TimeCut& to, DrillReport& report) {
  RankTimes sums{};
  double wanted = 0;
  for (std::uint32_t m = 0; m < from.meshes.size(); ++m) {
    if (run.record->meshes[m].sidecar) continue;
    wanted += requested(run, m, from.at, to.at);
    for (std::size_t b = 0; b < kTimeBins; ++b) sums[b] += to.meshes[m][b] - from.meshes[m][b];
  }
  for (std::size_t b = 0; b < kTimeBins; ++b) report.rank_milliseconds[b] = std::llround(sums[b]);
  if (wanted > 0) report.ettr = sums[bin_place(TimeBin::kNew)] / wanted;
}

void put_curve(const Run& run, const TimeSheet& sheet, DrillReport& report) {
  if (sheet.samples.size() < 2) return;
  const WallTime end = sheet.samples.back().at;
  const Duration all = between(sheet.samples.front().at, end);
  const Duration step = std::max(Duration::seconds(1), all / static_cast<std::int64_t>(kMostPoints));
  const TimeCut* last = &sheet.samples.front();
  for (const TimeCut& cut : sheet.samples) {
    const Duration wall = between(last->at, cut.at);
    if (wall < step && !(cut.at == end && wall > Duration::zero())) continue;
    report.curve.push_back({.at = cut.at, .steps_per_second = new_steps(run, *last, cut).steps / wall.count_seconds()});
    last = &cut;
  }
}

std::vector<TimeCut>::const_iterator first_after(const TimeSheet& sheet, WallTime at) {
  return std::upper_bound(sheet.samples.begin(), sheet.samples.end(), at,
                          [](WallTime time, const TimeCut& cut) { return time < cut.at; });
}

// Part of the time in which every gang ran. Nothing: no time passed, or there is no gang.
std::optional<double> availability(const Run& run) {
  const DrillRecord& record = *run.record;
  const Duration wall = between(record.control_to, record.faults_to);
  if (run.gangs.empty() || wall <= Duration::zero()) return std::nullopt;
  std::vector<bool> down(run.gangs.size(), false);
  std::size_t many = 0;
  Duration full;
  WallTime at = record.control_to;
  const auto until = [&](WallTime to) {
    to = std::clamp(to, at, std::max(at, record.faults_to));
    if (many == 0) full = full + between(at, to);
    at = to;
  };
  for (const RunEvent& one : run.by_time) {
    if (!one.gang || run.gangs[*one.gang].sidecar) continue;
    const EventKind kind = one.event->kind;
    const bool ends = kind == EventKind::kGangFailed || kind == EventKind::kGangStopping ||
                      kind == EventKind::kGangParked || kind == EventKind::kGangStarting;
    const bool runs = kind == EventKind::kGangRunning || kind == EventKind::kGangDone;
    if (!ends && !runs) continue;
    until(one.event->time);
    if (down[*one.gang] == ends) continue;
    down[*one.gang] = ends;
    many = ends ? many + 1 : many - 1;
  }
  until(record.faults_to);
  return full.count_seconds() / wall.count_seconds();
}

}  // namespace

TimeSheet time_sheet(const Run& run) {
  TimeSheet sheet;
  const auto& samples = run.record->samples;
  sheet.samples.reserve(samples.size());
  const std::size_t stride = sample_stride(*run.record);
  for (std::size_t i = 0; i < samples.size(); i += stride) sheet.samples.push_back(cut_of(run, samples[i]));
  std::stable_sort(sheet.samples.begin(), sheet.samples.end(),
                   [](const TimeCut& a, const TimeCut& b) { return a.at < b.at; });
  return sheet;
}

std::optional<TimeCut> cut_at(const TimeSheet& sheet, WallTime at) {
  if (sheet.samples.empty()) return std::nullopt;
  const auto after = std::lower_bound(sheet.samples.begin(), sheet.samples.end(), at,
                                      [](const TimeCut& cut, WallTime time) { return cut.at < time; });
  if (after == sheet.samples.begin()) return sheet.samples.front();
  if (after == sheet.samples.end()) return sheet.samples.back();
  return between_cuts(*std::prev(after), *after, at);
}

// Where several gangs of a mesh do steps again at once, each has its part by how many these were.
Duration redone_within(const Run& run, const TimeSheet& sheet, std::uint32_t gang, WallTime from, WallTime to) {
  const RunGang& facts = run.gangs[gang];
  const auto before = cut_at(sheet, from);
  const auto after = std::lower_bound(sheet.samples.begin(), sheet.samples.end(), to,
                                      [](const TimeCut& cut, WallTime time) { return cut.at < time; });
  if (!before || sheet.samples.empty() || facts.ranks == 0) return Duration::zero();
  const TimeCut& end = after == sheet.samples.end() ? sheet.samples.back() : *after;
  const std::size_t bin = bin_place(TimeBin::kRedone);
  const double spent = std::max(end.meshes[facts.mesh][bin] - before->meshes[facts.mesh][bin], 0.0);
  double all = 0;
  double own = 0;
  for (const RunEvent& one : run.by_time) {
    if (one.event->kind != EventKind::kGangCaughtUp || !one.gang) continue;
    const bool within = one.event->time >= from && one.event->time <= later(to, Duration::seconds(1));
    if (!within || run.gangs[*one.gang].mesh != facts.mesh) continue;
    const auto again = static_cast<double>(number_of(*one.event, "again").value_or(0));
    all += again;
    if (*one.gang == gang) own += again;
  }
  const double part = all > 0 ? own / all : 1;
  const double alone = spent * part / facts.ranks;
  return std::min(Duration::nanoseconds(static_cast<std::int64_t>(std::min(alone * 1e6, kMostNanoseconds))),
                  between(from, to));
}

std::optional<double> furthest_by(const TimeSheet& sheet, std::uint32_t gang, WallTime by) {
  const auto after = first_after(sheet, by);
  return after == sheet.samples.begin() ? std::nullopt : std::prev(after)->steps[gang];
}

std::optional<WallTime> past_steps(const TimeSheet& sheet, std::uint32_t gang, WallTime since) {
  const double before = furthest_by(sheet, gang, since).value_or(0);
  for (auto cut = first_after(sheet, since); cut != sheet.samples.end(); ++cut) {
    if (cut->steps[gang].value_or(0) > before) return cut->at;
  }
  return std::nullopt;
}

std::optional<double> steps_per_second(const Run& run, const TimeSheet& sheet, WallTime from, WallTime to) {
  const auto first = cut_at(sheet, from);
  const auto last = cut_at(sheet, to);
  if (!first || !last || last->at <= first->at) return std::nullopt;
  const NewSteps found = new_steps(run, *first, *last);
  if (!found.any) return std::nullopt;
  return found.steps / between(first->at, last->at).count_seconds();
}

void put_ledger(const Run& run, const TimeSheet& sheet, DrillReport& report) {
  const DrillRecord& record = *run.record;
  const auto from = cut_at(sheet, record.control_to);
  const auto to = cut_at(sheet, record.faults_to);
  if (from && to && to->at > from->at) {
    put_sums(run, *from, *to, report);
    report.invariants.push_back(ledger_holds(run, sheet, *from, *to, report));
  }
  report.baseline_steps_per_second = steps_per_second(run, sheet, record.control_from, record.control_to);
  const auto kept = steps_per_second(run, sheet, record.control_to, record.faults_to);
  const bool based = report.baseline_steps_per_second && *report.baseline_steps_per_second > 0;
  if (kept && based) report.goodput = *kept / *report.baseline_steps_per_second;
  report.availability = availability(run);
  put_curve(run, sheet, report);
}

}  // namespace monarch::drill
