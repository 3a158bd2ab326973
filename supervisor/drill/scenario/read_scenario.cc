#include "supervisor/drill/scenario/read_scenario.h"

#include <algorithm>
#include <utility>

#include "supervisor/drill/scenario/build_scenario.h"
#include "supervisor/drill/scenario/drill_schema.h"
#include "supervisor/spec/check/check.h"
#include "supervisor/spec/file_kind.h"
#include "supervisor/spec/yaml/local_path.h"
#include "supervisor/spec/yaml/source_text.h"
#include "supervisor/spec/yaml/values.h"
#include "supervisor/spec/yaml/yaml_text.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

void check_version(const YamlNode& root, Report& report) {
  const auto number = integer_of(&root, "version");
  if (!number || number == 1U) return;
  report.error("E0212", root.find("version")->place,
               {.message = text("version ", *number, " of a scenario is not known"),
                .label = "this build reads version 1",
                .help = "`version: 1` would work, if the scenario uses nothing newer"});
}

std::string job_of(const YamlNode& root, const SpecSource& source, const ScenarioSurroundings& around, Report& report) {
  const YamlNode* const job = nonempty_scalar_of(&root, "job");
  if (job == nullptr) return "";
  const auto path = local_path(*job, "job", {.directory = source.directory, .home = around.home}, report);
  if (!path || !around.exists || around.exists(*path)) return path.value_or("");
  report.error("E0511", job->place,
               {.message = text("there is no file ", *path),
                .label = "the spec of the job is looked for from this file's folder",
                .help = "write where it is, or leave `job` out and name the spec on the command line"});
  return "";
}

std::string pattern_of(const YamlNode& root, const ScenarioSurroundings& around, Report& report) {
  const YamlNode* const pattern = nonempty_scalar_of(value_of(&root, "expect"), "same_output");
  if (pattern == nullptr) return "";
  const auto problem = around.pattern_problem ? around.pattern_problem(pattern->text) : std::nullopt;
  if (!problem) return pattern->text;
  report.error("E0510", pattern->place,
               {.message = text("`expect.same_output`: ", *problem),
                .label = "a regular expression, as --grep takes one, with one group in parentheses",
                .help = "for example `'with loss ([0-9.]+)'`"});
  return "";
}

}  // namespace

ScenarioOutcome read_scenario(const SpecSource& source, const ScenarioSurroundings& around) {
  ScenarioOutcome outcome;
  outcome.sources.push_back({source.name, std::string(without_byte_order_mark(source.text))});
  Report report(source.name, outcome.sources.front().text);
  std::optional<YamlNode> root = read_yaml(outcome.sources.front().text, report);
  if (root && !refuse_other_kind(*root, FileKind::kScenario, report)) {
    check_against_schema(drill_schema(), *root, report, UnbuiltKeys::kRefuse);
    if (root->is(YamlNode::Kind::kMap)) {
      check_version(*root, report);
      outcome.scenario = build_scenario(*root, report);
      outcome.scenario->job = job_of(*root, source, around, report);
      outcome.scenario->same_output = pattern_of(*root, around, report);
    }
  }
  if (report.failed()) outcome.scenario.reset();
  if (root) outcome.tree = std::move(*root);
  outcome.diagnostics = report.diagnostics();
  for (Diagnostic& fault : outcome.diagnostics) {
    if (fault.id == "E0010") fault.help = "`monarch drill --smoke SPEC --print` shows a small one to start from";
  }
  return outcome;
}

std::string render(const ScenarioOutcome& outcome, RenderOptions options) {
  std::vector<std::string_view> texts;
  for (const SpecText& source : outcome.sources) texts.emplace_back(source.text);
  return render(outcome.diagnostics, texts, options);
}

std::string scenario_text(const OneBlow& blow) {
  std::string out = "version: 1\ndrill: one-blow\nsettle: 0s\ncontrol: 0s\nfaults:\n";
  out += text("  - fault: ", yaml_scalar(blow.fault), "\n    at: 0s\n");
  const std::pair<std::string_view, const std::string&> words[] = {{"mesh", blow.target.mesh},
                                                                   {"at", blow.target.at},
                                                                   {"rank", blow.target.rank},
                                                                   {"gang", blow.target.gang},
                                                                   {"host", blow.target.host}};
  std::vector<std::string> target;
  for (const auto& [key, value] : words) {
    if (!value.empty()) target.push_back(text(key, ": ", yaml_scalar(value)));
  }
  if (!target.empty()) out += text("    target: {", join(target, ", "), "}\n");
  const std::pair<std::string_view, const std::string&> more[] = {
      {"for", blow.lasts}, {"processes", blow.processes}, {"percent", blow.percent}, {"size", blow.size}};
  for (const auto& [key, value] : more) {
    if (!value.empty()) out += text("    ", key, ": ", yaml_scalar(value), "\n");
  }
  return out;
}

}  // namespace monarch::drill
