#include "supervisor/drill/core/measure_figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "transport/base/text.h"

namespace monarch::drill {

namespace {

// Around a limit either may happen.
constexpr Duration kAroundLimit = Duration::seconds(2);
// A keeper whose daemon stands still ends it after two seconds, and starts another one.
constexpr Duration kDaemonReplaced = Duration::seconds(3);

// The last of the gangs that failed; nothing: one of them never came so far, or none failed.
std::optional<WallTime> last_of(const BlowStory& story, std::optional<WallTime> GangStory::*when) {
  std::optional<WallTime> last;
  for (const auto& [place, gang] : story.gangs) {
    if (!gang.failed) continue;
    if (!(gang.*when)) return std::nullopt;
    last = std::max(last.value_or(WallTime{}), *(gang.*when));
  }
  return last;
}

std::optional<Duration> span_of(std::optional<WallTime> from, std::optional<WallTime> to) {
  if (!from || !to) return std::nullopt;
  return std::max(between(*from, *to), Duration::zero());
}

void put_times(const Run& run, const Blow& blow, const BlowStory& story, FaultFigures& figures) {
  const WallTime struck = struck_at(run, blow);
  const auto started = last_of(story, &GangStory::started);
  const auto running = last_of(story, &GangStory::running);
  figures.ttd = span_of(struck, story.seen);
  figures.ttf = span_of(story.seen, started);
  figures.tts = span_of(started, running);
  figures.ttr = span_of(struck, last_of(story, &GangStory::recovered));
  if (!figures.ttd) return;
  const bool failed = std::any_of(story.gangs.begin(), story.gangs.end(),
                                  [](const auto& entry) { return entry.second.failed.has_value(); });
  if (failed) {
    if (figures.ttf && figures.tts) figures.ours = *figures.ttd + *figures.ttf + *figures.tts;
    return;
  }
  figures.ours = figures.ttd;
  // A process that is stopped can say nothing.
  const bool stood_still = story.seen_by == EventKind::kSupervisorStoodStill;
  if (stood_still) figures.ours = std::max(between(over_at(run, blow), *story.seen), Duration::zero());
}

std::uint32_t gangs_started(const Run& run, const BlowStory& story) {
  std::uint32_t started = 0;
  for (const auto& [place, gang] : story.gangs) {
    if (!gang.started) continue;
    started += run.planted(MeasureMutant::kBlastByRanks) ? run.gangs[place].ranks : 1U;
  }
  return started;
}

// Rank-milliseconds of gangs that a blow had started again.
std::int64_t redone_after(const Run& run, const TimeSheet& sheet, const BlowStory& story) {
  double sum = 0;
  for (const auto& [place, gang] : story.gangs) {
    if (!gang.started || !gang.recovered || *gang.recovered < *gang.started) continue;
    const Duration alone = redone_within(run, sheet, place, *gang.started, *gang.recovered);
    sum += alone.count_seconds() * 1000 * run.gangs[place].ranks;
  }
  return std::llround(std::min(sum, 4e18));
}

std::string stage_of(const BlowStory& story) {
  std::uint32_t attempts = 0;
  for (const auto& [place, gang] : story.gangs) attempts = std::max(attempts, gang.failures);
  if (attempts < 2) return story.remedy;
  return text(story.remedy, ", ", attempts, " attempts");
}

std::string note_of(const Run& run, const Blow& blow, const BlowStory& story, const FaultFigures& figures) {
  std::vector<std::string> notes;
  if (story.fault == nullptr) notes.push_back(text("there is no fault ", blow.fault));
  const BlowEnd end = end_of(blow, story);
  if (end == BlowEnd::kSkipped) notes.push_back(blow.why.empty() ? "skipped" : text("skipped: ", blow.why));
  if (end == BlowEnd::kInert) {
    const bool felt = blow.end == BlowEnd::kInert;
    notes.push_back(!felt              ? "inert: it was in effect, and was never felt"
                    : blow.why.empty() ? "inert: it had no effect"
                                       : text("inert: ", blow.why));
  }
  const bool effective = end == BlowEnd::kEffective;
  if (effective && figures.needs_seeing && !figures.seen) notes.emplace_back("no event tells of it");
  if (effective && figures.gangs_started > figures.gangs_expected) {
    notes.push_back(text(counted(figures.gangs_started, "gang"), " started again for ", figures.gangs_expected));
  }
  if (effective && recovery_of(run, blow, story) == std::optional(false)) {
    notes.emplace_back("not every gang that it struck came back to where it was");
  }
  if (end != BlowEnd::kSkipped && !blow.taken_back) {
    notes.push_back(text("not taken back", blow.why.empty() ? "" : ": ", blow.why));
  }
  return join(notes, "; ");
}

FaultFigures figures_of(const Run& run, const Blow& blow, const BlowStory& story, const TimeSheet& time) {
  FaultFigures figures{.number = blow.number};
  const BlowEnd end = end_of(blow, story);
  if (story.fault != nullptr) {
    figures.of = story.fault->of;
    figures.needs_seeing = story.fault->needs_seeing;
    const ExpectedGangs expected = expected_gangs(run, blow, *story.fault);
    figures.gangs_started = gangs_started(run, story);
    figures.gangs_expected = std::clamp(figures.gangs_started, expected.least, expected.most);
  }
  if (end == BlowEnd::kEffective) {
    put_times(run, blow, story, figures);
    figures.seen = story.seen.has_value();
    if (story.seen) figures.seen_by = name_of(story.seen_by);
    figures.redone_rank_milliseconds = redone_after(run, time, story);
    figures.stage = stage_of(story);
  }
  if (run.planted(MeasureMutant::kInertSurvives) && end == BlowEnd::kInert) figures.seen = true;
  figures.note = note_of(run, blow, story, figures);
  for (const JobEvent* event : story.events) {
    if (event->number > 0) figures.events.push_back(event->number);
  }
  return figures;
}

void put_counts(const Run& run, const Blame& blame, DrillReport& report) {
  for (std::size_t i = 0; i < run.record->blows.size(); ++i) {
    const FaultFigures& figures = report.faults[i];
    BlowEnd end = end_of(run.record->blows[i], blame.stories[i]);
    if (run.planted(MeasureMutant::kInertSurvives) && end == BlowEnd::kInert) end = BlowEnd::kEffective;
    switch (end) {
      case BlowEnd::kEffective: ++report.effective; break;
      case BlowEnd::kInert: ++report.inert; break;
      case BlowEnd::kSkipped: ++report.skipped; break;
    }
    if (end != BlowEnd::kEffective) continue;
    report.needed_seeing += figures.needs_seeing ? 1U : 0U;
    report.seen += figures.needs_seeing && figures.seen ? 1U : 0U;
  }
}

void put_classes(const Run& run, DrillReport& report) {
  for (std::size_t c = 0; c < kFaultClassNames.size(); ++c) {
    const auto of = static_cast<FaultClass>(c);
    const auto spread = [&](std::optional<Duration> FaultFigures::*which) {
      std::vector<Duration> values;
      for (const FaultFigures& figures : report.faults) {
        if (figures.of == of && figures.*which) values.push_back(*(figures.*which));
      }
      const std::vector<Duration> all = values;
      Spread found = spread_of(std::move(values));
      if (run.planted(MeasureMutant::kMeanForP95) && found.n > 0) {
        found.p95 = std::accumulate(all.begin(), all.end(), Duration::zero()) / std::int64_t{found.n};
      }
      return found;
    };
    ClassFigures all{.of = of,
                     .ttd = spread(&FaultFigures::ttd),
                     .ttf = spread(&FaultFigures::ttf),
                     .tts = spread(&FaultFigures::tts),
                     .ttr = spread(&FaultFigures::ttr),
                     .ours = spread(&FaultFigures::ours)};
    const bool any = std::any_of(report.faults.begin(), report.faults.end(),
                                 [of](const FaultFigures& figures) { return figures.of == of; });
    if (any) report.classes.push_back(all);
  }
}

}  // namespace

Spread spread_of(std::vector<Duration> values) {
  Spread spread;
  if (values.empty()) return spread;
  std::sort(values.begin(), values.end());
  const auto at = [&values](std::size_t percent) {
    const std::size_t place = (values.size() * percent + 99) / 100;
    return values[std::max<std::size_t>(place, 1) - 1];
  };
  return {.n = static_cast<std::uint32_t>(values.size()), .p50 = at(50), .p95 = at(95), .max = values.back()};
}

std::optional<Duration> hang_limit(const DrillRecord& record, const Blow& blow) {
  for (const BlowGang& gang : blow.target.gangs) {
    if (gang.mesh < record.meshes.size() && record.meshes[gang.mesh].hang) return record.meshes[gang.mesh].hang;
  }
  return record.times.hang;
}

ExpectedGangs expected_gangs(const Run& run, const Blow& blow, const Fault& fault) {
  const DrillTimes& times = run.record->times;
  const auto struck = static_cast<std::uint32_t>(blow.target.gangs.size());
  const Duration lasted = between(struck_at(run, blow), over_at(run, blow));
  const Duration longest = std::max(blow.lasts, lasted);
  const Duration shortest = std::min(blow.lasts, lasted);
  switch (fault.cost) {
    case FaultCost::kNobody: return {};
    case FaultCost::kItsGang:
    case FaultCost::kItsGangs: return {struck, struck};
    case FaultCost::kIfFelt: return {0, struck};
    case FaultCost::kBySpec: {
      const auto hang = hang_limit(*run.record, blow);
      if (!hang || longest < *hang) return {};
      return {shortest > std::min(*hang, kLongest) + kAroundLimit ? struck : 0, struck};
    }
    case FaultCost::kByKeeper:
      if (longest < times.lost_after || times.lost_after > kDaemonReplaced) return {};
      return {0, struck};
    case FaultCost::kByLength:
      if (longest < std::min(times.lost_after, times.lease)) return {};
      return {
          shortest > std::min(times.lost_after, kLongest) + std::min(times.lease, kLongest) + kAroundLimit ? struck : 0,
          struck};
  }
  return {};
}

BlowEnd end_of(const Blow& blow, const BlowStory& story) {
  const bool felt = story.fault == nullptr || story.fault->cost != FaultCost::kIfFelt || story.seen;
  if (blow.end == BlowEnd::kEffective) return felt ? BlowEnd::kEffective : BlowEnd::kInert;
  return blow.end;
}

std::optional<bool> recovery_of(const Run& run, const Blow& blow, const BlowStory& story) {
  if (story.fault == nullptr || end_of(blow, story) != BlowEnd::kEffective) return std::nullopt;
  std::uint32_t failed = 0;
  std::uint32_t back = 0;
  for (const auto& [place, gang] : story.gangs) {
    failed += gang.failed ? 1U : 0U;
    back += gang.failed && (gang.recovered || gang.struck_again) ? 1U : 0U;
  }
  const std::uint32_t least = expected_gangs(run, blow, *story.fault).least;
  if (failed == 0 && least == 0) return std::nullopt;
  return back == failed && failed >= least;
}

void put_figures(const Run& run, const Blame& blame, const TimeSheet& time, DrillReport& report) {
  for (std::size_t i = 0; i < run.record->blows.size(); ++i) {
    report.faults.push_back(figures_of(run, run.record->blows[i], blame.stories[i], time));
  }
  put_counts(run, blame, report);
  put_classes(run, report);
  const Duration wall = between(run.record->control_to, run.record->faults_to);
  if (report.effective > 0 && wall > Duration::zero()) report.mtbf = wall / std::int64_t{report.effective};
  if (report.needed_seeing > 0) report.recall = static_cast<double>(report.seen) / report.needed_seeing;
  if (blame.blamed > 0) report.precision = static_cast<double>(blame.explained) / blame.blamed;
}

}  // namespace monarch::drill
