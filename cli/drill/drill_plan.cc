#include "cli/drill/drill_plan.h"

#include <algorithm>
#include <utility>

#include "cli/args/say.h"
#include "cli/drill/drill_targets.h"
#include "cli/start/scenario_input.h"
#include "supervisor/drill/core/drill_core.h"
#include "supervisor/drill/scenario/check_scenario.h"
#include "supervisor/drill/scenario/read_scenario.h"
#include "supervisor/drill/scenario/smoke.h"
#include "supervisor/spec/spec.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Beside what its faults take: of its start, its end, and the recovery from the last of them.
constexpr Duration kBesideFaults = Duration::seconds(600);

// The command line's, with what makes the job one that may be drilled, and that ends where nobody is left to end it.
Arguments with_settings(const Arguments& arguments, Duration longest) {
  Arguments with = arguments;
  std::vector<std::string> settings = arguments.values("set");
  settings.push_back("drills.allow=true");
  settings.push_back(text("lifetime.max=", longest.count_milliseconds() / 1'000, "s"));
  with.set("set", std::move(settings));
  return with;
}

// As those have it who start everything again at each failure.
Arguments with_full_restart(const Arguments& arguments, const JobSpec& spec, Duration longest) {
  Arguments with = with_settings(arguments, longest);
  std::vector<std::string> settings = with.values("set");
  for (const char* const none : {"supervision.restart.max=0", "supervision.reallocate.max=0"}) {
    settings.emplace_back(none);
    for (const MeshSpec& mesh : spec.meshes) settings.push_back(text("meshes.", mesh.name, ".", none));
  }
  for (const MeshSpec& mesh : spec.meshes) settings.push_back(text("meshes.", mesh.name, ".gang=all"));
  with.set("set", std::move(settings));
  return with;
}

Duration longest_of(const drill::Scenario& scenario) {
  return scenario.settle + scenario.control + scenario.duration.value_or(drill::kLongestFaults) + kBesideFaults;
}

std::optional<PlannedDrill> held_against(drill::ScenarioOutcome outcome, std::string written,
                                         std::optional<SpecInput> input, const drill::ScenarioJob& job,
                                         const Context& context) {
  if (outcome.scenario) drill::check_scenario(outcome, job);
  if (!outcome.diagnostics.empty()) write_err(drill::render(outcome, {.colour = context.terminal.err_colour}));
  if (!outcome.scenario) return std::nullopt;
  return PlannedDrill{
      .scenario = std::move(*outcome.scenario), .text = std::move(written), .left_out = {}, .input = std::move(input)};
}

std::optional<SpecSource> scenario_file(const std::string& path, const Context& context) {
  auto source = read_spec_file(path, kPipePatience, "scenario");
  if (source.ok()) return std::move(*source);
  say_error(context.terminal, {.id = "E0013", .message = source.error().message, .help = ""});
  return std::nullopt;
}

std::optional<PlannedDrill> plan_smoke(const Arguments& arguments, const Context& context) {
  const auto with = with_settings(arguments, drill::kLongestFaults + kBesideFaults);
  auto input = take_spec(*arguments.value("smoke"), with, context);
  if (!input) return std::nullopt;
  const drill::SmokeScenario smoke = drill::smoke_scenario(input->spec);
  const drill::ScenarioJob job{.spec = input->spec, .tree = &input->tree, .sources = input->sources};
  auto planned = held_against(drill::read_scenario({.name = "smoke", .text = smoke.text, .directory = ""}), smoke.text,
                              std::nullopt, job, context);
  if (!planned) return std::nullopt;
  planned->left_out = smoke.left_out;
  planned->input = std::move(input);
  return planned;
}

}  // namespace

std::optional<PlannedDrill> plan_own_drill(const Arguments& arguments, const Context& context) {
  if (arguments.has("smoke")) return plan_smoke(arguments, context);
  const std::string path = arguments.positional(0);
  if (path.empty()) {
    return refuse_value(context, "which scenario? or --smoke SPEC, which needs none",
                        "configs/drills/ has scenarios to start from");
  }
  auto source = scenario_file(path, context);
  if (!source) return std::nullopt;
  drill::ScenarioOutcome outcome = drill::read_scenario(*source, users_scenario_surroundings());
  if (!outcome.scenario) {
    write_err(drill::render(outcome, {.colour = context.terminal.err_colour}));
    return std::nullopt;
  }
  const std::string named = arguments.positional(1);
  const std::string spec = named.empty() ? outcome.scenario->job : named;
  if (spec.empty()) {
    return refuse_value(context, text(printable(path), " names no job"),
                        text("write `job: SPEC.yaml` there, or: monarch drill ", printable(path), " SPEC.yaml"));
  }
  auto input = take_spec(spec, with_settings(arguments, longest_of(*outcome.scenario)), context);
  if (!input) return std::nullopt;
  const DrillTargets targets(input->spec);
  const drill::ScenarioJob job{
      .spec = input->spec,
      .tree = &input->tree,
      .sources = input->sources,
      .target_problem = [&targets](const drill::FaultTarget& target) { return targets.objection(target); }};
  auto planned = held_against(std::move(outcome), source->text, std::nullopt, job, context);
  if (!planned) return std::nullopt;
  if (arguments.has("compare")) planned->scenario.compare = drill::Compare::kFullRestart;
  if (planned->scenario.compare == drill::Compare::kFullRestart) {
    planned->peer = take_spec(spec, with_full_restart(arguments, input->spec, longest_of(planned->scenario)), context);
    if (!planned->peer) return std::nullopt;
  }
  planned->input = std::move(input);
  return planned;
}

std::optional<PlannedDrill> plan_live_drill(const OpenedJob& job, const Arguments& arguments, const Context& context) {
  std::optional<SpecSource> source;
  if (const auto fault = arguments.value("fault")) {
    const drill::OneBlow blow{.fault = *fault,
                              .target = {.mesh = arguments.value("mesh").value_or(""),
                                         .at = arguments.value("at").value_or(""),
                                         .rank = arguments.value("rank").value_or(""),
                                         .gang = "",
                                         .host = arguments.value("host").value_or("")},
                              .lasts = arguments.value("for").value_or("")};
    source = SpecSource{.name = "command line", .text = drill::scenario_text(blow), .directory = ""};
  } else if (!arguments.positional(0).empty()) {
    source = scenario_file(arguments.positional(0), context);
    if (!source) return std::nullopt;
  } else {
    return refuse_value(context, "which scenario? or --fault NAME, which is one blow");
  }
  const DrillTargets targets(job.spec, job.named_hosts());
  const drill::ScenarioJob against{
      .spec = job.spec,
      .target_problem = [&targets](const drill::FaultTarget& target) { return targets.objection(target); },
      .one_blow = arguments.has("fault")};
  return held_against(drill::read_scenario(*source, users_scenario_surroundings()), source->text, std::nullopt, against,
                      context);
}

}  // namespace monarch
