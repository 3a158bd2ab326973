#include "supervisor/drill/core/drill_words.h"

#include <array>
#include <cmath>
#include <utility>

#include "supervisor/drill/core/faults.h"
#include "supervisor/drill/core/measure_bounds.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

constexpr std::string_view kNothingThere = "–";

// Short times are shown to the millisecond, as those of the tables.
std::string amount_of(MeasureUnit unit, double value) {
  if (unit != MeasureUnit::kSeconds) return amount_words(unit, value);
  return to_text(Duration::nanoseconds(static_cast<std::int64_t>(std::llround(value * 1e9))));
}

std::string_view meaning_of(Measure measure) {
  switch (measure) {
    case Measure::kSeen: return "faults seen, of those that are to be seen";
    case Measure::kOursP95: return "our part of the way back, p95";
    case Measure::kTtrP95: return "time to recover, p95";
    case Measure::kTtdP95: return "time to detect, p95";
    case Measure::kEttr: return "part of the time that went into new steps";
    case Measure::kGoodput: return "new steps a second, of those without faults";
    case Measure::kBlast: return "gangs started again, of those struck";
    case Measure::kFalsePositives: return "blame that no fault explains";
    case Measure::kLeftovers: return "left behind on hosts";
    case Measure::kInert: return "faults without effect, of all";
    case Measure::kRatio: return "time lost, of what stopping and starting everything loses";
  }
  return "";
}

// What every drill is held to, whatever its scenario says.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kOwnMeanings = {{
    {"complete", "the drill ran to its end"},
    {"recovered", "faults recovered from, of those that cost gangs"},
    {"same_output", "the output of an undisturbed run"},
}};

}  // namespace

FaultState state_of(const Blow& blow, const FaultFigures& figures) {
  if (!blow.taken_back) return FaultState::kWrong;
  if (blow.end == BlowEnd::kSkipped) return FaultState::kSkipped;
  const Fault* const fault = find_fault(blow.fault);
  const bool unfelt = fault != nullptr && fault->cost == FaultCost::kIfFelt && !figures.seen;
  if (blow.end == BlowEnd::kInert || unfelt) return FaultState::kInert;
  const bool unseen = figures.needs_seeing && !figures.seen;
  return unseen || !figures.note.empty() ? FaultState::kWrong : FaultState::kFine;
}

std::string_view word_of(FaultState state) {
  switch (state) {
    case FaultState::kFine: return "as expected";
    case FaultState::kWrong: return "wrong";
    case FaultState::kInert: return "inert";
    case FaultState::kSkipped: return "skipped";
  }
  return "";
}

std::string result_words(const Blow& blow, const FaultFigures& figures) {
  const FaultState state = state_of(blow, figures);
  if (state == FaultState::kFine) return std::string(word_of(state));
  // A note begins with that word where the fault itself came to nothing.
  if (!figures.note.empty()) return state == FaultState::kWrong ? text("wrong: ", figures.note) : figures.note;
  return text(word_of(state), blow.why.empty() ? "" : ": ", blow.why);
}

const FaultFigures& figures_of(const DrillReport& report, std::size_t place) {
  static const FaultFigures kNone;
  return place < report.faults.size() ? report.faults[place] : kNone;
}

std::string target_words(const BlowTarget& target) {
  if (target.host.empty()) return "the supervisor";
  if (target.mesh.empty()) return target.host;
  return text(target.mesh, "/", target.rank, " on ", target.host);
}

std::string target_words(const Blow& blow) {
  const Fault* const fault = find_fault(blow.fault);
  const bool nobody = blow.target.host.empty() && fault != nullptr && fault->whom != StrikeWhom::kSupervisor;
  return nobody ? "nobody" : target_words(blow.target);
}

std::string words_of(const std::optional<Duration>& duration) {
  return duration ? to_text(*duration) : std::string(kNothingThere);
}

std::string bound_words(const BoundResult& bound) {
  return text(bound.at_least ? "≥ " : "≤ ", amount_of(bound.unit, bound.bound));
}

std::string value_words(const BoundResult& bound) {
  return bound.value ? amount_of(bound.unit, *bound.value) : "no evidence";
}

std::string meaning_words(std::string_view what) {
  for (const auto& [name, meaning] : kOwnMeanings) {
    if (name == what) return std::string(meaning);
  }
  const std::size_t dot = what.find('.');
  for (const MeasureFacts& facts : kMeasures) {
    if (facts.name != what.substr(0, dot)) continue;
    return text(meaning_of(facts.measure), dot == std::string_view::npos ? "" : ": ",
                dot == std::string_view::npos ? "" : what.substr(dot + 1));
  }
  return "";
}

std::vector<std::string> names_of_what_failed(const DrillRecord& record, const DrillReport& report) {
  std::vector<std::string> names;
  for (const BoundResult& bound : report.bounds) {
    if (!bound.met) names.push_back(bound.what);
  }
  for (const InvariantResult& invariant : report.invariants) {
    if (!invariant.broken.empty()) names.push_back(invariant.label);
  }
  for (std::size_t i = 0; i < record.blows.size(); ++i) {
    if (state_of(record.blows[i], figures_of(report, i)) != FaultState::kWrong) continue;
    names.push_back(text("fault ", record.blows[i].number));
  }
  return names;
}

}  // namespace monarch::drill
