#pragma once

// DrillReport: what a record comes to: figures, bounds and whether they were met, invariants, and the exit code. The
// last line, the table, report.json, the JUnit file and the page show this and decide nothing.
//
// Thread: values.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "supervisor/core/state/ledger.h"
#include "supervisor/drill/core/measures.h"
#include "transport/base/time.h"

namespace monarch::drill {

// Nearest rank; of nothing there is no figure.
struct Spread {
  std::uint32_t n = 0;
  Duration p50;
  Duration p95;
  Duration max;
};

struct FaultFigures {
  std::uint32_t number = 0;  // of the blow
  std::optional<FaultClass> of;
  bool needs_seeing = false;
  bool seen = false;
  std::string seen_by;  // the event's kind
  std::optional<Duration> ttd;
  std::optional<Duration> ttf;
  std::optional<Duration> tts;
  std::optional<Duration> ttr;
  std::optional<Duration> ours;
  std::int64_t redone_rank_milliseconds = 0;
  std::uint32_t gangs_started = 0;   // again, because of it
  std::uint32_t gangs_expected = 0;  // by its row
  std::string stage;                 // of recovery
  std::string note;  // what is wrong with it: not seen, not undone, blast; or why it is inert or skipped
  std::vector<std::uint64_t> events;  // numbers of those that it explains
};

struct ClassFigures {
  FaultClass of = FaultClass::kProcess;
  Spread ttd;
  Spread ttf;
  Spread tts;
  Spread ttr;
  Spread ours;
};

struct BoundResult {
  std::string what;  // "ours_p95.process"
  double bound = 0;
  std::optional<double> value;  // nothing: there is no evidence, and it is not met
  std::uint32_t n = 0;
  bool met = false;
  std::string why;  // one line for people
  MeasureUnit unit = MeasureUnit::kRatio;
  bool at_least = false;
};

struct InvariantResult {
  std::string label;  // "I4"
  std::string words;
  std::uint64_t checks = 0;
  std::vector<std::string> broken;  // each with its place
};

struct LaneSpan {
  WallTime from;
  WallTime to;
  std::optional<TimeBin> bin;  // nothing: a spare, or no rank
  std::string gang;            // "trainer/0"
  std::uint64_t generation = 0;
};
struct Lane {
  std::string host;   // empty: the supervisor
  std::string role;   // rank, spare, supervisor
  bool quiet = true;  // nothing but work was there
  std::vector<LaneSpan> spans;
};

struct CurvePoint {
  WallTime at;
  double steps_per_second = 0;  // new ones, over all gangs
};

enum class DrillVerdict : std::uint8_t { kPassed, kFailed, kBroken, kInert, kInterrupted };
inline constexpr std::array<std::string_view, 5> kDrillVerdictNames = {"passed", "failed", "broken", "inert",
                                                                       "interrupted"};
constexpr std::string_view name_of(DrillVerdict verdict) {
  return kDrillVerdictNames[static_cast<std::size_t>(verdict)];
}

struct DrillReport {
  DrillVerdict verdict = DrillVerdict::kFailed;
  int exit_code = 0;
  std::string sentence;  // the last line of the command
  std::vector<BoundResult> bounds;
  std::vector<InvariantResult> invariants;
  std::vector<FaultFigures> faults;  // as the record's blows
  std::vector<ClassFigures> classes;
  std::array<std::int64_t, kTimeBins> rank_milliseconds{};  // from control_to to faults_to
  std::int64_t unaccounted_rank_milliseconds = 0;           // what the bins lack, or have too much
  std::uint32_t effective = 0;
  std::uint32_t inert = 0;
  std::uint32_t skipped = 0;
  std::uint32_t needed_seeing = 0;
  std::uint32_t seen = 0;
  std::optional<double> ettr;
  std::optional<double> goodput;
  std::optional<double> availability;
  std::optional<double> precision;
  std::optional<double> recall;
  std::optional<double> ratio;  // with `compare`
  std::optional<Duration> mtbf;
  std::vector<std::string> false_positives;  // each event that nothing explains, as a line
  std::uint32_t false_positives_of_control = 0;
  std::optional<double> false_positives_per_host_hour;  // those of control too
  std::optional<double> baseline_steps_per_second;      // of control
  std::vector<CurvePoint> curve;
  std::vector<Lane> lanes;
};

}  // namespace monarch::drill
