// The keys of a scenario, what others call them, and the words of faults, events and measures, which have tables of
// their own.

#include "supervisor/drill/scenario/scenario_rows.h"

#include <deque>
#include <string>

#include "supervisor/drill/core/faults.h"
#include "supervisor/drill/core/measures.h"
#include "supervisor/drill/core/scenario.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"
#include "transport/messages/event_kinds.h"

namespace monarch::drill::scenario_rows {

namespace {

using enum ValueType;

constexpr std::int64_t kOpen = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kDay = 86'400'000;  // milliseconds

// What other tools call the same faults.
constexpr std::string_view kFaultsOfOthers =
    "segfault=segv|sigsegv=segv|sigkill=kill|pod-kill=kill|process-kill=kill|crash=kill|sigabrt=abort|"
    "sigterm=term|terminate=term|stop=hang|sigstop=hang|pause=hang|stall=hang|deadlock=hang|reboot=power-loss|"
    "power-off=power-loss|poweroff=power-loss|node-kill=power-loss|host-kill=power-loss|pod-failure=power-loss|"
    "partition=cut|network-partition=cut|blackhole=cut|isolate=cut|packet-loss=loss|network-loss=loss|"
    "cpu=overload|cpu-stress=overload|stress=overload|memory-stress=memory-pressure|oom=no-memory|"
    "connection-reset=reset|straggler=slow|slowdown=slow";

constexpr Synonym kSynonyms[] = {
    {"name", "drill"},
    {"title", "drill"},
    {"spec", "job"},
    {"warmup", "settle"},
    {"baseline", "control"},
    {"steady_state", "control"},
    {"time", "duration"},
    {"length", "duration"},
    {"random_seed", "seed"},
    {"experiments", "faults"},
    {"actions", "faults"},
    {"chaos", "faults"},
    {"inject", "faults"},
    {"thresholds", "expect"},
    {"assertions", "expect"},
    {"probes", "expect"},
    {"slo", "expect"},
    {"stop_conditions", "guard"},
    {"abort_if", "guard"},
    {"limits", "guard"},
    {"kind", "faults.[].fault"},
    {"type", "faults.[].fault"},
    {"action", "faults.[].fault"},
    {"interval", "faults.[].every"},
    {"mean", "faults.[].every"},
    {"mtbf", "faults.[].every"},
    {"period", "faults.[].every"},
    {"when", "faults.[].at"},
    {"start", "faults.[].at"},
    {"step", "faults.[].on_step"},
    {"event", "faults.[].on_event"},
    {"delay", "faults.[].after"},
    {"count", "faults.[].times"},
    {"repeat", "faults.[].times"},
    {"lasts", "faults.[].for"},
    {"duration", "faults.[].for"},
    {"selector", "faults.[].target"},
    {"node", "faults.[].target.host"},
    {"mesh", "faults.[].target.mesh"},
    {"rank", "faults.[].target.rank"},
    {"host", "faults.[].target.host"},
    {"mttr", "expect.ttr_p95"},
    {"mttd", "expect.ttd_p95"},
    {"recall", "expect.seen"},
};

// What tables elsewhere say, kept for as long as rows look at it.
std::string_view kept(std::string words) {
  static std::deque<std::string> all;
  return all.emplace_back(std::move(words));
}

std::string_view fault_words() {
  std::vector<std::string> names;
  for (const Fault& fault : drill::faults()) names.emplace_back(fault.name);
  return kept(join(names, "|"));
}

std::string_view event_words() {
  std::vector<std::string> names;
  for (const EventKindFacts& kind : kEventKinds) names.emplace_back(kind.name);
  return kept(join(names, "|"));
}

// What each measure is, in the order of measures.h. What is held to where nothing is written is the measure's own
// (measure_bounds.cc).
struct MeasureWords {
  Measure measure;
  std::string_view doc;
  std::int64_t most = kOpen;
  std::string_view unwritten{};  // what holds where it is not written
};
constexpr MeasureWords kMeasureWords[] = {
    {Measure::kSeen, "of the faults that need to be seen, the part that was, at least", 1, "1"},
    {Measure::kOursP95, "from a blow until its gang is started again, less the program's own start, at most"},
    {Measure::kTtrP95, "from a blow until its gang is past its last step, at most"},
    {Measure::kTtdP95, "from a blow until the first event of it, at most"},
    {Measure::kEttr, "new work, of all rank-seconds asked for, at least", 1},
    {Measure::kGoodput, "new steps a second, of those in `control`, at least"},
    {Measure::kBlast, "gangs started again, of those that had to be, at most", kOpen, "1"},
    {Measure::kFalsePositives, "events of blame that no fault explains, at most", kOpen, "0"},
    {Measure::kLeftovers, "what is left of the job or of a fault on any host, at most", kOpen, "0"},
    {Measure::kInert, "of all faults, the part that did nothing or was skipped, at most", 1, "0.05"},
    {Measure::kRatio, "with `compare`: lost rank-seconds, of those that stopping all loses, at most"},
};
constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(kMeasureWords); ++i) {
    if (kMeasureWords[i].measure != kMeasures[i].measure) return false;
  }
  return std::size(kMeasureWords) == std::size(kMeasures);
}
static_assert(in_order());

}  // namespace

std::vector<KeyRow> top() {
  return {
      {.path = "version", .type = kInteger, .required = true, .doc = "the version of this format: 1"},
      {.path = "drill", .type = kText, .least = 1, .required = true, .doc = "its name, in the report and in events"},
      {.path = "job", .type = kText, .least = 1, .doc = "the spec of the job, from the folder of this file"},
      {.path = "seed", .type = kInteger, .doc = "of what is drawn; without it one is drawn, and said"},
      {.path = "settle",
       .type = kDuration,
       .default_value = "5s",
       .most = kDay,
       .doc = "all are ready and step for so long before it begins"},
      {.path = "control",
       .type = kDuration,
       .default_value = "30s",
       .most = kDay,
       .doc = "then so long without a fault, to compare with; ten heartbeats at least"},
      {.path = "duration",
       .type = kDuration,
       .least = 1000,
       .most = 30 * kDay,
       .doc = "of the faults; without it until the last is recovered from, at most 10m"},
      {.path = "overlap", .type = kBool, .default_value = "false", .doc = "what is down may be struck again"},
      {.path = "guard", .type = kMap, .doc = "when a fault has to wait, and when the drill stops"},
      {.path = "guard.max_gangs_down",
       .type = kInteger,
       .default_value = "1",
       .least = 1,
       .most = limits::kRanksPerJob,
       .doc = "a fault waits while so many are down"},
      {.path = "guard.min_spares",
       .type = kInteger,
       .default_value = "0",
       .most = limits::kHostsPerJob,
       .doc = "a fault that costs a host waits until so many are connected"},
      {.path = "guard.wait",
       .type = kDuration,
       .default_value = "60s",
       .most = kDay,
       .doc = "of one fault; then it is skipped"},
      {.path = "guard.stop_below_goodput",
       .type = kNumber,
       .default_value = "0",
       .most = 1,
       .doc = "the drill stops where new steps fall below this part of `control`"},
      {.path = "budgets",
       .type = kWord,
       .default_value = "forgiven",
       .words = "forgiven|real",
       .doc = "forgiven: what a fault spent of restarts and replacements is given back"},
      {.path = "compare",
       .type = kWord,
       .default_value = "none",
       .words = "none|full-restart",
       .doc = "full-restart: the same again with a job that is stopped and started whole"},
  };
}

std::vector<KeyRow> faults() {
  return {
      {.path = "faults", .type = kList, .least = 1, .most = 1'000, .required = true, .doc = "what is done to the job"},
      {.path = "faults.[]", .type = kMap},
      {.path = "faults.[].fault",
       .type = kWord,
       .words = fault_words(),
       .meant = kFaultsOfOthers,
       .required = true,
       .doc = "which; `monarch drill --faults` says what each does and needs"},
      {.path = "faults.[].at", .type = kDuration, .most = 30 * kDay, .doc = "once, so long after the end of `control`"},
      {.path = "faults.[].every",
       .type = kDuration,
       .least = 100,
       .most = kDay,
       .doc = "again and again, with random gaps of this mean"},
      {.path = "faults.[].on_step", .type = kInteger, .least = 1, .doc = "once a gang that is meant is past this step"},
      {.path = "faults.[].on_event",
       .type = kWord,
       .words = event_words(),
       .doc = "when this event comes, as monarch-events(7) names it"},
      {.path = "faults.[].after", .type = kDuration, .default_value = "0s", .most = kDay, .doc = "the event: so long"},
      {.path = "faults.[].times",
       .type = kInteger,
       .default_value = "1",
       .least = 1,
       .most = 10'000,
       .doc = "that the event counts; later ones do not"},
      {.path = "faults.[].target",
       .type = kMap,
       .doc = "who is struck; without it one healthy rank or host, drawn by `seed`"},
      {.path = "faults.[].target.mesh", .type = kText, .least = 1, .doc = "a rank of this mesh, or `random`"},
      {.path = "faults.[].target.at", .type = kText, .least = 1, .doc = "a rank with these coordinates, as --at"},
      {.path = "faults.[].target.rank", .type = kText, .least = 1, .doc = "one of these ranks of the mesh, as --rank"},
      {.path = "faults.[].target.gang", .type = kText, .least = 1, .doc = "a rank of this gang of the mesh, by number"},
      {.path = "faults.[].target.host", .type = kText, .least = 1, .doc = "one of these hosts, or `random`"},
      {.path = "faults.[].for",
       .type = kDuration,
       .least = 100,
       .most = kDay,
       .doc = "how long it lasts, where it does; 10s, and of supervisor-hang 3s"},
      {.path = "faults.[].processes",
       .type = kInteger,
       .least = 1,
       .most = 4'096,
       .doc = "of overload: how many want a processor"},
      {.path = "faults.[].percent", .type = kInteger, .least = 1, .most = 100, .doc = "of loss: packets of a hundred"},
      {.path = "faults.[].size",
       .type = kSize,
       .least = 1,
       .doc = "of memory-pressure: what it leaves, or 5 % of all; of flood: what it writes a second, or 1MiB"},
  };
}

std::vector<KeyRow> expect() {
  std::vector<KeyRow> rows = {{.path = "expect", .type = kMap, .doc = "what must hold for the drill to pass"}};
  for (const MeasureWords& words : kMeasureWords) {
    const MeasureFacts& facts = facts_of(words.measure);
    const std::string_view path = kept(text("expect.", facts.name));
    KeyRow row{.path = path, .type = kMap, .doc = words.doc};
    if (facts.unit == MeasureUnit::kRatio) row.type = kNumber;
    if (facts.unit == MeasureUnit::kCount) row.type = kInteger;
    row.most = words.most;
    row.default_value = words.unwritten;
    rows.push_back(row);
    for (const std::string_view of : kFaultClassNames) {
      if (!facts.by_class) break;
      rows.push_back({.path = kept(text(path, ".", of)),
                      .type = kDuration,
                      .least = 1,
                      .most = kDay,
                      .doc = kept(text("of the faults of the class ", of))});
    }
  }
  rows.push_back({.path = "expect.same_output",
                  .type = kText,
                  .least = 1,
                  .doc = "a pattern with one group: what it takes from the output is that of a run without faults"});
  return rows;
}

std::span<const Synonym> synonyms() { return kSynonyms; }

}  // namespace monarch::drill::scenario_rows
