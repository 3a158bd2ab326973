#include "supervisor/drill/scenario/check_scenario.h"
#include "supervisor/core/spec/given_times.h"

#include <algorithm>
#include <utility>

#include "supervisor/drill/scenario/scenario_check.h"
#include "supervisor/spec/yaml/scalar.h"
#include "supervisor/spec/yaml/values.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

constexpr std::int64_t kBeatsOfControl = 10;

const YamlNode* node_at(const YamlNode* node, std::initializer_list<std::string_view> way) {
  for (const std::string_view key : way) node = value_of(node, key);
  return node;
}

void check_supervisor(const ScenarioCheck& check) {
  if (check.job.spec.supervisor_on != SupervisorPlace::kFirst) return;
  const auto spec = check.in_spec({"supervisor", "on"}, "");
  check.report.error(
      "E0509", spec ? spec->place : Place{},
      {.message = "a job whose supervisor is on its first host cannot be drilled",
       .label = "faults are injected from where the supervisor lives, and no other host is reached from there",
       .help = "leave it out for the drill: `--set supervisor.on=here`"});
}

void check_control(const ScenarioCheck& check) {
  const Duration least = check.job.spec.supervision.heartbeat * kBeatsOfControl;
  if (check.scenario.control >= least) return;
  check.report.error(
      "E0506", check.at({"control"}),
      {.message = text("`control` (", write_duration(check.scenario.control), ") is shorter than ten heartbeats of ",
                       write_duration(check.job.spec.supervision.heartbeat)),
       .label = "too short to tell a false suspicion from a late heartbeat",
       .help = text("`", write_duration(least), "` would work"),
       .other = check.in_spec({"supervision", "heartbeat"}, "the heartbeat")});
}

Duration planned(const Scenario& scenario) {
  Duration last = Duration::zero();
  for (const FaultEntry& entry : scenario.faults) last = std::max(last, entry.at);
  return scenario.settle + scenario.control + scenario.duration.value_or(last);
}

void check_lengths(const ScenarioCheck& check) {
  const Scenario& scenario = check.scenario;
  const Duration faults = scenario.duration.value_or(kLongestFaults);
  for (std::size_t i = 0; i < scenario.faults.size(); ++i) {
    const FaultEntry& entry = scenario.faults[i];
    if (entry.trigger != TriggerKind::kAt || entry.at < faults) continue;
    check.report.error("E0508", check.in_fault(i, {"at"}),
                       {.message = text("`faults[", i, "]` is due ", write_duration(entry.at),
                                        " after `control`, and faults end after ", write_duration(faults)),
                        .label = "would never strike",
                        .help = scenario.duration ? "make `duration` longer" : "`duration` says how long they go on"});
  }
  const Duration whole = planned(scenario);
  if (check.job.spec.time_limit > whole) return;
  check.report.error("E0508", check.at({scenario.duration ? "duration" : "faults"}),
                     {.message = text("`settle`, `control` and the faults take ", write_duration(whole),
                                      ", and the job ends after ", write_duration(check.job.spec.time_limit)),
                      .label = "too long for this job",
                      .help = "make `duration` shorter, or the job's `time_limit` longer: `--set time_limit=none`",
                      .other = check.in_spec({"time_limit"}, "the job's time limit")});
}

std::uint32_t replacements(const JobSpec& spec) {
  return spec.pool_size() > spec.hosts_needed() ? spec.pool_size() - spec.hosts_needed() : 0;
}

std::optional<FaultElsewhere> spares_in_spec(const ScenarioCheck& check) {
  const std::string launcher = check.job.spec.launch.facts().name;
  return check.in_spec({"launch", launcher, "spares"},
                       text("this job has ", counted(check.job.spec.spares(), "spare")));
}

void check_spares(const ScenarioCheck& check) {
  const std::uint32_t wanted = check.scenario.guard.min_spares;
  if (wanted <= check.job.spec.spares()) return;
  check.report.error(
      "E0507", check.at({"guard", "min_spares"}),
      {.message =
           text("`guard.min_spares` is ", wanted, ", and the job has ", counted(check.job.spec.spares(), "spare")),
       .label = "no fault that costs a host would ever strike",
       .help = text("`spares` of `launch.", check.job.spec.launch.facts().name, "` says how many it has"),
       .other = spares_in_spec(check)});
}

bool may_shrink(const JobSpec& spec) {
  return std::any_of(spec.meshes.begin(), spec.meshes.end(),
                     [](const MeshSpec& mesh) { return mesh.supervision.shrink.has_value(); });
}

// Why nobody takes the place of a host, and what would help.
struct NoReplacement {
  std::string why;
  std::string help;
  std::optional<FaultElsewhere> other;
};

NoReplacement no_replacement(const ScenarioCheck& check, std::uint32_t others) {
  if (check.job.spec.supervision.reallocate.max == 0U) {
    return {.why = "`reallocate.max: 0` allows no replacement",
            .help = "for the drill: `--set supervision.reallocate.max=4`",
            .other = check.in_spec({"supervision", "reallocate", "max"}, "no replacement")};
  }
  return {.why = text("the job has ", others == 0 ? "no host" : counted(others, "host"), " beside those of its ranks"),
          .help = text("give the job spares, or let losses be further apart: a lost host is tried again after ",
                       write_duration(kFirstReturn)),
          .other = spares_in_spec(check)};
}

// Faults that come at known times and cost a host each.
void check_losses(const ScenarioCheck& check) {
  const JobSpec& spec = check.job.spec;
  if (may_shrink(spec)) return;
  struct Loss {
    Duration at;
    std::size_t entry;
  };
  const std::uint32_t others = spec.supervision.reallocate.max == 0U ? 0 : replacements(spec);
  std::vector<Loss> losses;
  for (std::size_t i = 0; i < check.scenario.faults.size(); ++i) {
    const FaultEntry& entry = check.scenario.faults[i];
    // Of others nobody knows when they come, and a guard holds them back.
    const bool known = entry.trigger == TriggerKind::kAt || others == 0;
    if (known && check.costs_host(entry)) losses.push_back({entry.at, i});
  }
  std::stable_sort(losses.begin(), losses.end(), [](const Loss& a, const Loss& b) { return a.at < b.at; });
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const auto out = std::count_if(losses.begin(), losses.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                   [&](const Loss& loss) { return losses[i].at - loss.at < kFirstReturn; });
    if (out <= static_cast<std::ptrdiff_t>(others)) continue;
    const std::size_t entry = losses[i].entry;
    const std::string costs =
        out == 1 ? "costs a host"
                 : text("is fault number ", out, " that costs a host within ", write_duration(kFirstReturn));
    NoReplacement nobody = no_replacement(check, others);
    check.report.error("E0507", check.in_fault(entry, {"fault"}),
                       {.message = text("`faults[", entry, "]` ", costs, ", and ", nobody.why),
                        .label = "nothing could take its place",
                        .help = std::move(nobody.help),
                        .other = std::move(nobody.other)});
    return;
  }
}

}  // namespace

Place ScenarioCheck::at(std::initializer_list<std::string_view> way) const {
  const YamlNode* const node = node_at(&tree, way);
  return node == nullptr ? Place{} : node->place;
}

Place ScenarioCheck::in_fault(std::size_t i, std::initializer_list<std::string_view> way) const {
  const YamlNode* const faults = value_of(&tree, "faults");
  if (faults == nullptr || i >= faults->items.size()) return {};
  const YamlNode* const node = node_at(&faults->items[i], way);
  return node == nullptr ? faults->items[i].place : node->place;
}

std::optional<FaultElsewhere> ScenarioCheck::in_spec(std::initializer_list<std::string_view> way,
                                                     std::string label) const {
  const YamlNode* const node = node_at(job.tree, way);
  if (node == nullptr || node->place.line == 0) return std::nullopt;
  FaultElsewhere found{.place = node->place, .label = std::move(label)};
  ++found.place.source;  // the scenario is in front of them
  return found;
}

bool ScenarioCheck::costs_host(const FaultEntry& entry) const {
  const FaultCost cost = fault_of(entry).cost;
  return cost == FaultCost::kItsGangs ||
         (cost == FaultCost::kByLength && entry.lasts >= job.spec.supervision.lost_after);
}

void check_scenario(ScenarioOutcome& outcome, const ScenarioJob& job) {
  if (!outcome.scenario) return;
  for (const SpecText& source : job.sources) outcome.sources.push_back(source);
  Report report;
  for (const SpecText& source : outcome.sources) (void)report.add_source(source.name, source.text);
  const ScenarioCheck check{.scenario = *outcome.scenario, .tree = outcome.tree, .job = job, .report = report};
  check_supervisor(check);
  check_targets(check);
  if (!job.one_blow) {
    check_control(check);
    check_lengths(check);
    check_spares(check);
    check_losses(check);
    check_bounds(check);
  }
  outcome.diagnostics = report.diagnostics();
  if (report.failed()) outcome.scenario.reset();
}

}  // namespace monarch::drill
