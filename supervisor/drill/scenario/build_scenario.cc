#include "supervisor/drill/scenario/build_scenario.h"

#include <algorithm>
#include <array>
#include <optional>

#include "supervisor/drill/core/faults.h"
#include "supervisor/spec/yaml/scalar.h"
#include "supervisor/spec/yaml/values.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

// A fault of the list, on its way.
struct Entry {
  const YamlNode& node;
  const Fault& fault;
  std::string path;  // "faults[0]"
};

std::optional<Duration> written_duration(const YamlNode* map, std::string_view key) {
  const YamlNode* const node = nonempty_scalar_of(map, key);
  return node == nullptr ? std::nullopt : parse_duration(*node).value;
}

std::string name_of_drill(const YamlNode& root, Report& report) {
  constexpr std::size_t kLongest = 64;
  const YamlNode* const node = nonempty_scalar_of(&root, "drill");
  if (node == nullptr) return "";
  const bool plain = std::all_of(node->text.begin(), node->text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  });
  if (plain && node->text.size() <= kLongest && node->text.front() != '-' && node->text.front() != '.')
    return node->text;
  report.error("E0210", node->place,
               {.message = text(quoted_value(node->text), " is not a name of a drill"),
                .label = "letters, digits, `-`, `_` and `.`, at most 64, a letter or digit first",
                .help = "reports and folders are called so"});
  return "";
}

// Exactly one of these is in each fault.
constexpr std::array<std::string_view, 4> kTriggers = {"at", "every", "on_step", "on_event"};

void read_trigger(const Entry& entry, FaultEntry& out, Report& report) {
  std::vector<const YamlKey*> written;
  for (const YamlKey& key : entry.node.keys) {
    if (std::find(kTriggers.begin(), kTriggers.end(), key.text) != kTriggers.end()) written.push_back(&key);
  }
  if (written.empty()) {
    report.error("E0501", entry.node.place,
                 {.message = text("`", entry.path, "` does not say when"),
                  .label = "one of `at`, `every`, `on_step` and `on_event` is needed",
                  .help = "`at: 0s` is at the end of `control`, or once the fault before it is recovered from"});
    return;
  }
  if (written.size() > 1) {
    report.error("E0501", written[1]->place,
                 {.message = text("`", entry.path, "` has both `", written[0]->text, "` and `", written[1]->text, "`"),
                  .label = "a fault has one of them",
                  .help = "write two faults where both are meant",
                  .other = FaultElsewhere{.place = written[0]->place, .label = "the first"}});
    return;
  }
  const std::string_view key = written[0]->text;
  out.at = duration_or(&entry.node, "at", Duration::zero());
  out.every = duration_or(&entry.node, "every", Duration::zero());
  if (const YamlNode* const step = nonempty_scalar_of(&entry.node, "on_step"))
    out.step = static_cast<std::uint64_t>(std::max<std::int64_t>(0, parse_integer(*step).value.value_or(0)));
  if (const auto event = text_of(&entry.node, "on_event")) out.event = event_kind_of(*event).value_or(EventKind{});
  out.trigger = static_cast<TriggerKind>(std::find(kTriggers.begin(), kTriggers.end(), key) - kTriggers.begin());
}

void refuse_key(const Entry& entry, std::string_view key, std::string why, std::string help, Report& report) {
  report.error("E0502", entry.node.find_key(key)->place,
               {.message = text("`", entry.path, ".", key, "`: ", why),
                .label = text("not a key of `", entry.fault.name, "`"),
                .help = std::move(help)});
}

void read_event_keys(const Entry& entry, FaultEntry& out, Report& report) {
  for (const std::string_view key : {"after", "times"}) {
    const YamlKey* const written = entry.node.find_key(key);
    if (written == nullptr || entry.node.find("on_event") != nullptr) continue;
    report.error("E0502", written->place,
                 {.message = text("`", entry.path, ".", key, "` belongs to `on_event`, which is not written"),
                  .label = "there is no event to count from",
                  .help = key == "times" ? "`every` strikes again and again" : "`at` says a time by itself"});
  }
  out.after = duration_or(&entry.node, "after", Duration::zero());
  out.times = integer_of(&entry.node, "times").value_or(1);
}

// What the rows of some faults ask for, and no other takes.
struct SaidKey {
  FaultSays says;
  std::string_view key;
  std::string_view example{};  // where it has to be written
};
constexpr SaidKey kSaid[] = {{FaultSays::kProcesses, "processes", "processes: 4"},
                             {FaultSays::kPercent, "percent", "percent: 30"},
                             {FaultSays::kSize, "size"}};

std::string names_that_say(FaultSays says) {
  std::vector<std::string> names;
  for (const Fault& fault : faults()) {
    if (fault.says == says) names.push_back(text("`", fault.name, "`"));
  }
  return join(names, " and ");
}

void read_amounts(const Entry& entry, FaultEntry& out, Report& report) {
  for (const SaidKey& said : kSaid) {
    const bool written = entry.node.find_key(said.key) != nullptr;
    if (written && entry.fault.says != said.says) {
      refuse_key(entry, said.key, text("`", entry.fault.name, "` has none"),
                 text("it belongs to ", names_that_say(said.says)), report);
    }
    if (written || entry.fault.says != said.says || said.example.empty()) continue;
    report.error("E0502", entry.node.find_key("fault")->place,
                 {.message = text("`", entry.path, "`: `", entry.fault.name, "` needs `", said.key, "`"),
                  .label = text(entry.fault.does),
                  .help = text("for example `", said.example, "`")});
  }
  out.processes = integer_of(&entry.node, "processes").value_or(0);
  out.percent = integer_of(&entry.node, "percent").value_or(100);
  out.size = size_or(&entry.node, "size", 0);
}

void read_length(const Entry& entry, FaultEntry& out, Report& report) {
  const auto written = written_duration(&entry.node, "for");
  out.lasts = entry.fault.can_last() ? written.value_or(entry.fault.lasts) : Duration::zero();
  if (entry.fault.can_last() || entry.node.find_key("for") == nullptr) return;
  refuse_key(entry, "for", text("`", entry.fault.name, "` does not last"),
             text("what it does is done at once: ", entry.fault.does), report);
}

// Which targets a fault takes.
std::vector<std::string_view> target_keys(const Fault& fault) {
  if (fault.whom == StrikeWhom::kSupervisor) return {};
  if (fault.whom == StrikeWhom::kRank) return {"mesh", "at", "rank", "gang"};
  return {"host"};
}

std::string_view struck_thing(const Fault& fault) {
  if (fault.whom == StrikeWhom::kSupervisor) return "the supervisor";
  return fault.whom == StrikeWhom::kRank ? "a rank" : "a host";
}

std::string target_help(const Fault& fault) {
  if (fault.whom == StrikeWhom::kSupervisor) return "leave `target` out: there is one supervisor";
  if (fault.whom == StrikeWhom::kRank) return "`mesh`, `at`, `rank` and `gang` say which; `power-loss` strikes a host";
  return "`host: random` is any host with ranks, and `host: NAME` is one; `kill` strikes a rank";
}

void read_target(const Entry& entry, FaultEntry& out, Report& report) {
  const YamlNode* const target = value_of(&entry.node, "target");
  if (target == nullptr || !target->is(YamlNode::Kind::kMap)) return;
  const std::vector<std::string_view> keys = target_keys(entry.fault);
  for (const YamlKey& key : target->keys) {
    if (std::find(keys.begin(), keys.end(), key.text) != keys.end()) continue;
    report.error("E0503", key.place,
                 {.message = text("`", entry.path, "`: `", entry.fault.name, "` strikes ", struck_thing(entry.fault),
                                  ", and `", key.text, "` is none of it"),
                  .label = keys.empty() ? std::string("it takes no target")
                                        : text("it takes ", join({keys.begin(), keys.end()}, ", ")),
                  .help = target_help(entry.fault)});
    return;
  }
  out.target = {.mesh = text_of(target, "mesh").value_or(""),
                .at = text_of(target, "at").value_or(""),
                .rank = text_of(target, "rank").value_or(""),
                .gang = text_of(target, "gang").value_or(""),
                .host = text_of(target, "host").value_or("")};
}

ScenarioPlace place_of(Place place) { return {.line = place.line, .column = place.column}; }

std::vector<FaultEntry> build_faults(const YamlNode& root, Report& report) {
  std::vector<FaultEntry> out;
  const YamlNode* const list = value_of(&root, "faults");
  if (list == nullptr || !list->is(YamlNode::Kind::kList)) return out;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const YamlNode& node = list->items[i];
    const auto name = text_of(&node, "fault");
    const Fault* const fault = name ? find_fault(*name) : nullptr;
    if (!node.is(YamlNode::Kind::kMap) || fault == nullptr) continue;  // reported by the schema
    const Entry entry{.node = node, .fault = *fault, .path = text("faults[", i, "]")};
    FaultEntry& built = out.emplace_back();
    built.fault = fault->name;
    built.place = place_of(node.place);
    read_trigger(entry, built, report);
    read_event_keys(entry, built, report);
    read_length(entry, built, report);
    read_amounts(entry, built, report);
    read_target(entry, built, report);
  }
  return out;
}

std::vector<Bound> build_bounds(const YamlNode* expect) {
  std::vector<Bound> out;
  for (const MeasureFacts& facts : kMeasures) {
    const YamlNode* const written = value_of(expect, facts.name);
    if (written == nullptr) continue;
    if (!facts.by_class) {
      const double value = facts.unit == MeasureUnit::kCount
                               ? static_cast<double>(integer_of(expect, facts.name).value_or(0))
                               : number_or(expect, facts.name, 0);
      out.push_back({.measure = facts.measure, .of = {}, .value = value, .place = place_of(written->place)});
      continue;
    }
    for (std::size_t i = 0; i < kFaultClassNames.size(); ++i) {
      const auto bound = written_duration(written, kFaultClassNames[i]);
      if (!bound) continue;
      out.push_back({.measure = facts.measure,
                     .of = static_cast<FaultClass>(i),
                     .value = bound->count_seconds(),
                     .place = place_of(written->find(kFaultClassNames[i])->place)});
    }
  }
  return out;
}

DrillGuard build_guard(const YamlNode* guard) {
  DrillGuard out;
  out.max_gangs_down = integer_of(guard, "max_gangs_down").value_or(out.max_gangs_down);
  out.min_spares = integer_of(guard, "min_spares").value_or(out.min_spares);
  out.wait = duration_or(guard, "wait", out.wait);
  out.stop_below_goodput = number_or(guard, "stop_below_goodput", out.stop_below_goodput);
  return out;
}

}  // namespace

Scenario build_scenario(const YamlNode& root, Report& report) {
  Scenario out;
  out.name = name_of_drill(root, report);
  if (const YamlNode* const seed = nonempty_scalar_of(&root, "seed")) {
    const auto number = parse_integer(*seed).value;
    if (number) out.seed = static_cast<std::uint64_t>(*number);
  }
  out.settle = duration_or(&root, "settle", out.settle);
  out.control = duration_or(&root, "control", out.control);
  out.duration = written_duration(&root, "duration");
  out.overlap = bool_or(&root, "overlap", out.overlap);
  out.faults = build_faults(root, report);
  out.guard = build_guard(value_of(&root, "guard"));
  if (text_of(&root, "budgets") == "real") out.budgets = Budgets::kReal;
  out.expect = build_bounds(value_of(&root, "expect"));
  if (text_of(&root, "compare") == "full-restart") out.compare = Compare::kFullRestart;
  return out;
}

}  // namespace monarch::drill
