#pragma once

// Scenario: what a drill is to do to a job, and what is expected of it, as its file says it. Targets are words here:
// who they mean is found when they are struck.
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/drill/core/measures.h"
#include "transport/base/time.h"
#include "transport/messages/event_kinds.h"

namespace monarch::drill {

// As written; empty: not written. `random` draws one of those that all other words leave.
inline constexpr char kRandom[] = "random";
struct FaultTarget {
  std::string mesh;
  std::string at;  // replica=1
  std::string rank;
  std::string gang;
  std::string host;
};

// Where in the scenario's text something stands, from 1; 0: it does not stand there.
struct ScenarioPlace {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

enum class TriggerKind : std::uint8_t { kAt, kEvery, kOnStep, kOnEvent };

struct FaultEntry {
  std::string fault;  // by the name of its row in faults.h
  FaultTarget target;
  TriggerKind trigger = TriggerKind::kAt;
  Duration at;             // kAt: from the end of control
  Duration every;          // kEvery: the mean of exponential gaps, the first from the end of control
  std::uint64_t step = 0;  // kOnStep: once a gang that is meant has passed it
  EventKind event = {};    // kOnEvent: each time, `times` times, so long `after` it
  Duration after;
  std::uint32_t times = 1;
  Duration lasts;               // zero: it does not last
  std::uint32_t processes = 0;  // overload
  std::uint32_t percent = 100;  // cut, cut-in, cut-out, loss: of the packets
  std::uint64_t size = 0;       // bytes: memory-pressure leaves so much, flood writes so much a second
  ScenarioPlace place;
};

struct DrillGuard {
  std::uint32_t max_gangs_down = 1;
  std::uint32_t min_spares = 0;
  Duration wait = Duration::seconds(60);  // of one fault, until it may strike
  double stop_below_goodput = 0;          // zero: never
};

enum class Budgets : std::uint8_t { kForgiven, kReal };
enum class Compare : std::uint8_t { kNone, kFullRestart };

struct Bound {
  Measure measure = Measure::kSeen;
  std::optional<FaultClass> of;  // the class that it is about; nothing: all
  double value = 0;              // a ratio, a number, or seconds, as the measure says
  ScenarioPlace place;
};

struct Scenario {
  std::string name;
  std::string job;  // the spec's path, absolute; empty: the command line names it
  std::optional<std::uint64_t> seed;
  Duration settle = Duration::seconds(5);
  Duration control = Duration::seconds(30);
  std::optional<Duration> duration;  // of the faults; nothing: until the last is recovered from, at most kLongestFaults
  bool overlap = false;
  std::vector<FaultEntry> faults;
  DrillGuard guard;
  Budgets budgets = Budgets::kForgiven;
  std::vector<Bound> expect;
  std::string same_output;  // a pattern with one group; empty: not asked
  Compare compare = Compare::kNone;
};

inline constexpr Duration kLongestFaults = Duration::seconds(600);

}  // namespace monarch::drill
