#include "supervisor/drill/core/measure_bounds.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "supervisor/drill/core/measure_figures.h"
#include "supervisor/drill/core/measure_invariants.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

struct Evidence {
  std::optional<double> value;
  std::uint32_t n = 0;
};

constexpr double kRounding = 1e-9;

const Spread* spread_of_class(const DrillReport& report, FaultClass of, Measure measure) {
  for (const ClassFigures& figures : report.classes) {
    if (figures.of != of) continue;
    if (measure == Measure::kOursP95) return &figures.ours;
    return measure == Measure::kTtrP95 ? &figures.ttr : &figures.ttd;
  }
  return nullptr;
}

// A bound of no class is about the worst of them.
Evidence seconds_of(const DrillReport& report, const Bound& bound) {
  Evidence found;
  for (std::size_t c = 0; c < kFaultClassNames.size(); ++c) {
    const auto of = static_cast<FaultClass>(c);
    if (bound.of && *bound.of != of) continue;
    const Spread* const spread = spread_of_class(report, of, bound.measure);
    if (spread == nullptr || spread->n == 0) continue;
    found.n += spread->n;
    found.value = std::max(found.value.value_or(0), spread->p95.count_seconds());
  }
  return found;
}

Evidence of_optional(std::optional<double> value, std::uint32_t n) { return {value, value ? n : 0}; }

// The worst fault; one that costs nobody has more than all of it where somebody was started again.
Evidence blast_of(const Run& run, const DrillReport& report) {
  Evidence found;
  for (std::size_t i = 0; i < report.faults.size(); ++i) {
    if (run.record->blows[i].end != BlowEnd::kEffective) continue;
    const FaultFigures& figures = report.faults[i];
    const double blast = figures.gangs_expected > 0
                             ? static_cast<double>(figures.gangs_started) / figures.gangs_expected
                             : figures.gangs_started * 2.0;
    ++found.n;
    found.value = std::max(found.value.value_or(0), blast);
  }
  return found;
}

Evidence inert_of(const Run& run, const DrillReport& report) {
  const bool forgotten = run.planted(MeasureMutant::kSkippedForgotten);
  const std::uint32_t skipped = forgotten ? 0 : report.skipped;
  const std::uint32_t all = report.effective + report.inert + skipped;
  if (all == 0) return {};
  return {static_cast<double>(report.inert + skipped) / all, all};
}

std::uint32_t samples_within(const DrillRecord& record, WallTime from, WallTime to) {
  std::uint32_t many = 0;
  for (std::size_t i = 0; i < record.samples.size(); i += sample_stride(record)) {
    const WallTime at = time_of(record.samples[i]);
    many += at >= from && at <= to ? 1U : 0U;
  }
  return many;
}

Evidence evidence_for(const Run& run, const DrillReport& report, const Bound& bound) {
  const DrillRecord& record = *run.record;
  const std::uint32_t watched = samples_within(record, record.control_to, record.ended);
  switch (bound.measure) {
    case Measure::kSeen: return of_optional(report.recall, report.needed_seeing);
    case Measure::kOursP95:
    case Measure::kTtrP95:
    case Measure::kTtdP95: return seconds_of(report, bound);
    case Measure::kEttr: return of_optional(report.ettr, watched);
    case Measure::kGoodput: return of_optional(report.goodput, watched);
    case Measure::kBlast: return blast_of(run, report);
    case Measure::kFalsePositives: {
      if (watched == 0) return {};
      return {static_cast<double>(report.false_positives.size() - report.false_positives_of_control), watched};
    }
    case Measure::kLeftovers:
      if (record.hosts_searched == 0) return {};
      return {static_cast<double>(leftovers_of(run).size()), record.hosts_searched};
    case Measure::kInert: return inert_of(run, report);
    case Measure::kRatio: return of_optional(report.ratio, 1);
  }
  return {};
}

void judge(const Run& run, BoundResult& result) {
  if (!result.value) {
    result.n = 0;
    result.met = run.planted(MeasureMutant::kNothingPasses);
    result.why = text(result.what, ": there is no evidence");
    return;
  }
  const double off = result.at_least ? *result.value - result.bound : result.bound - *result.value;
  result.met = off >= -kRounding;
  result.why =
      text(result.what, " ", amount_words(result.unit, *result.value), result.at_least ? ", at least " : ", at most ",
           amount_words(result.unit, result.bound), " (n ", result.n, ")");
}

BoundResult own_result(const Run& run, std::string what, Evidence evidence, double bound, MeasureUnit unit,
                       bool at_least) {
  BoundResult result{.what = std::move(what),
                     .bound = bound,
                     .value = evidence.value,
                     .n = evidence.n,
                     .met = false,
                     .why = {},
                     .unit = unit,
                     .at_least = at_least};
  judge(run, result);
  return result;
}

BoundResult result_of(const Run& run, const DrillReport& report, const Bound& bound) {
  const MeasureFacts& facts = facts_of(bound.measure);
  const std::string what = bound.of ? text(facts.name, ".", name_of(*bound.of)) : std::string(facts.name);
  return own_result(run, what, evidence_for(run, report, bound), bound.value, facts.unit, facts.at_least);
}

bool is_written(const DrillRecord& record, Measure measure) {
  return std::any_of(record.scenario.expect.begin(), record.scenario.expect.end(),
                     [measure](const Bound& bound) { return bound.measure == measure && !bound.of; });
}

// Bounds that hold without a word; those about blows, where there was one.
std::vector<Bound> unwritten(const Run& run, const DrillReport& report) {
  std::vector<Bound> bounds = {{.measure = Measure::kInert, .of = {}, .value = 0.05, .place = {}},
                               {.measure = Measure::kFalsePositives, .of = {}, .value = 0, .place = {}},
                               {.measure = Measure::kLeftovers, .of = {}, .value = 0, .place = {}}};
  if (report.needed_seeing > 0) bounds.push_back({.measure = Measure::kSeen, .of = {}, .value = 1, .place = {}});
  const auto& blows = run.record->blows;
  const bool any = std::any_of(blows.begin(), blows.end(), [](const Blow& b) { return b.end == BlowEnd::kEffective; });
  if (any) bounds.push_back({.measure = Measure::kBlast, .of = {}, .value = 1, .place = {}});
  std::erase_if(bounds, [&run](const Bound& bound) { return is_written(*run.record, bound.measure); });
  return bounds;
}

void put_recovered(const Run& run, const Blame& blame, DrillReport& report) {
  Evidence back;
  std::uint32_t recovered = 0;
  for (std::size_t i = 0; i < blame.stories.size(); ++i) {
    const auto recovery = recovery_of(run, run.record->blows[i], blame.stories[i]);
    if (!recovery) continue;
    ++back.n;
    recovered += *recovery ? 1U : 0U;
  }
  if (back.n == 0 || run.planted(MeasureMutant::kUnrecoveredPasses)) return;
  back.value = static_cast<double>(recovered) / back.n;
  report.bounds.push_back(own_result(run, "recovered", back, 1, MeasureUnit::kRatio, true));
}

void put_control(const Run& run, DrillReport& report) {
  if (run.record->scenario.control == Duration::zero()) return;  // one blow has none
  const DrillRecord& record = *run.record;
  if (run.planted(MeasureMutant::kControlUnwatched)) return;
  Evidence calm;
  calm.n = samples_within(record, record.control_from, record.control_to);
  if (calm.n > 0) calm.value = report.false_positives_of_control;
  report.bounds.push_back(own_result(run, "false_positives.control", calm, 0, MeasureUnit::kCount, false));
}

void put_output(const Run& run, DrillReport& report) {
  const DrillRecord& record = *run.record;
  if (record.scenario.same_output.empty()) return;
  Evidence same;
  same.n = record.same_output_seen ? 1 : 0;
  if (record.same_output_seen) same.value = record.same_output.empty() ? 1 : 0;
  BoundResult result = own_result(run, "same_output", same, 1, MeasureUnit::kCount, true);
  if (same.n > 0 && !result.met) result.why = text("same_output: ", record.same_output);
  report.bounds.push_back(std::move(result));
}

// "0.09 s (process) 6.1 s (host)"
// Of those that need not be seen, too.
std::size_t seen_faults(const DrillRecord& record, const DrillReport& report) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < report.faults.size() && i < record.blows.size(); ++i) {
    if (report.faults[i].seen && record.blows[i].end == BlowEnd::kEffective) ++seen;
  }
  return seen;
}

std::string ours_words(const DrillReport& report) {
  std::string words;
  for (const ClassFigures& figures : report.classes) {
    if (figures.ours.n == 0) continue;
    words +=
        text(words.empty() ? ", ours p95 " : " ", amount_words(MeasureUnit::kSeconds, figures.ours.p95.count_seconds()),
             " (", name_of(figures.of), ")");
  }
  return words;
}

const InvariantResult* first_broken(const DrillReport& report) {
  for (const InvariantResult& invariant : report.invariants) {
    if (!invariant.broken.empty()) return &invariant;
  }
  return nullptr;
}

// Too many inert faults have an exit code of their own.
bool is_inertness(const BoundResult& bound) { return bound.what == "inert" && bound.value; }

const BoundResult* first_unmet(const DrillReport& report, bool inertness) {
  for (const BoundResult& bound : report.bounds) {
    if (!bound.met && is_inertness(bound) == inertness) return &bound;
  }
  return nullptr;
}

}  // namespace

std::uint32_t allowed_leftovers(const DrillRecord& record) {
  for (const Bound& bound : record.scenario.expect) {
    if (bound.measure == Measure::kLeftovers && bound.value > 0) {
      return static_cast<std::uint32_t>(std::min(bound.value, 1e9));
    }
  }
  return 0;
}

void put_bounds(const Run& run, const Blame& blame, DrillReport& report) {
  const DrillRecord& record = *run.record;
  if (!record.cut_short.empty()) {
    report.bounds.push_back({.what = "complete",
                             .bound = 1,
                             .value = 0,
                             .n = 1,
                             .met = false,
                             .why = record.cut_short,
                             .unit = MeasureUnit::kCount,
                             .at_least = true});
  }
  for (const Bound& bound : record.scenario.expect) report.bounds.push_back(result_of(run, report, bound));
  for (const Bound& bound : unwritten(run, report)) report.bounds.push_back(result_of(run, report, bound));
  put_recovered(run, blame, report);
  put_control(run, report);
  put_output(run, report);
}

std::string amount_words(MeasureUnit unit, double value) {
  char words[64];
  switch (unit) {
    case MeasureUnit::kCount: return text(std::llround(std::clamp(value, -1e15, 1e15)));
    case MeasureUnit::kRatio: std::snprintf(words, sizeof words, "%.3g", value); return words;
    case MeasureUnit::kSeconds: break;
  }
  std::snprintf(words, sizeof words, value < 1 ? "%.2f s" : value < 100 ? "%.1f s" : "%.0f s", value);
  return words;
}

void put_verdict(const Run& run, DrillReport& report) {
  const InvariantResult* const broken = first_broken(report);
  const BoundResult* const unmet = first_unmet(report, false);
  const BoundResult* const inert = first_unmet(report, true);
  std::string first;
  if (broken != nullptr) {
    report.verdict = DrillVerdict::kBroken;
    report.exit_code = 4;
    first = text(": ", broken->label, ": ", broken->words, ": ", broken->broken.front());
  } else if (run.record->interrupted) {
    report.verdict = DrillVerdict::kInterrupted;
    report.exit_code = 130;
  } else if (unmet != nullptr) {
    report.verdict = DrillVerdict::kFailed;
    report.exit_code = 1;
    first = text(": ", unmet->why);
  } else if (inert != nullptr) {
    report.verdict = DrillVerdict::kInert;
    report.exit_code = 5;
    first = text(": ", inert->why);
  } else {
    report.verdict = DrillVerdict::kPassed;
    report.exit_code = 0;
  }
  const std::string skipped = report.skipped > 0 ? text(", ", report.skipped, " skipped") : "";
  report.sentence = printable(text("drill ", run.record->scenario.name, ": ", name_of(report.verdict), first,
                                   first.empty() ? ", " : "; ", counted(seen_faults(*run.record, report), "fault"),
                                   " seen, ", report.inert, " inert", skipped, ours_words(report)));
}

}  // namespace monarch::drill
