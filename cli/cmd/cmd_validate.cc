#include <algorithm>

#include "cli/args/say.h"
#include "cli/args/spec_flags.h"
#include "cli/commands.h"
#include "cli/drill/drill_targets.h"
#include "cli/start/scenario_input.h"
#include "cli/start/workspace_check.h"
#include "supervisor/drill/scenario/check_scenario.h"
#include "supervisor/drill/scenario/read_scenario.h"
#include "supervisor/spec/spec.h"
#include "transport/base/exit_code.h"
#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

Json diagnostic_json(const Diagnostic& diagnostic) {
  Json out = Json::object({{"v", 1},
                           {"type", "diagnostic"},
                           {"id", diagnostic.id},
                           {"severity", diagnostic.severity == DiagnosticSeverity::kError ? "error" : "warning"},
                           {"file", diagnostic.file},
                           {"line", diagnostic.line},
                           {"column", diagnostic.column},
                           {"length", diagnostic.length},
                           {"message", diagnostic.message},
                           {"label", diagnostic.label},
                           {"help", diagnostic.help}});
  if (!diagnostic.other) return out;
  const OtherPlace& other = *diagnostic.other;
  out.set("other", Json::object({{"file", other.file},
                                 {"line", other.line},
                                 {"column", other.column},
                                 {"length", other.length},
                                 {"label", other.label}}));
  return out;
}

Json result_json(const std::string& path, bool valid) {
  return Json::object({{"v", 1}, {"type", "result"}, {"file", path}, {"valid", valid}});
}

void show_complaints(const std::string& name, const std::vector<Complaint>& complaints, bool json,
                     const Terminal& terminal) {
  for (const Complaint& complaint : complaints) {
    if (!json) {
      say_error(terminal, complaint);
      continue;
    }
    const Diagnostic diagnostic{
        .id = complaint.id, .file = name, .message = complaint.message, .label = "", .help = complaint.help};
    write_out(terminal, to_json(diagnostic_json(diagnostic)) + "\n");
  }
  if (json) write_out(terminal, to_json(result_json(name, false)) + "\n");
}

struct Judged {
  std::vector<Diagnostic> diagnostics;
  std::string shown;  // the same, for people
  bool valid = false;
  std::vector<std::string> notes;
};

Judged judged(const SpecOutcome& outcome, RenderOptions options) {
  return {.diagnostics = outcome.diagnostics,
          .shown = render(outcome, options),
          .valid = outcome.loaded && outcome.diagnostics.empty(),
          .notes = outcome.loaded ? outcome.loaded->notes : std::vector<std::string>()};
}

// Of a drill, against the job that it names.
Judged judge_scenario(const SpecSource& source, const Arguments& arguments, RenderOptions options) {
  drill::ScenarioOutcome outcome = drill::read_scenario(source, users_scenario_surroundings());
  Judged out;
  const std::string job = outcome.scenario ? outcome.scenario->job : "";
  if (!job.empty()) {
    const TakenParts taken = take_parts(job, arguments);
    if (!taken.parts) {
      for (const Complaint& complaint : taken.complaints)
        out.diagnostics.push_back(
            {.id = complaint.id, .file = job, .message = complaint.message, .help = complaint.help});
      out.shown = render(out.diagnostics, "", options);
      return out;
    }
    const SpecOutcome spec = load_spec(*taken.parts, users_surroundings(kHashToLook));
    if (!spec.loaded) return judged(spec, options);
    const DrillTargets targets(spec.loaded->spec);
    drill::check_scenario(
        outcome, {.spec = spec.loaded->spec,
                  .tree = &spec.loaded->tree,
                  .sources = spec.sources,
                  .target_problem = [&targets](const drill::FaultTarget& meant) { return targets.objection(meant); }});
  } else if (outcome.scenario) {
    out.notes.push_back("it names no job, and was held against none");
  }
  out.diagnostics = outcome.diagnostics;
  out.shown = drill::render(outcome, options);
  out.valid = outcome.scenario.has_value();
  return out;
}

Judged judge(const SpecParts& parts, const Arguments& arguments, RenderOptions options) {
  SpecOutcome outcome = load_spec(parts, users_surroundings(kHashToLook));
  // A spec is meant by the command's name, and a scenario is a file of ours, too.
  const bool other_kind = outcome.diagnostics.size() == 1 && outcome.diagnostics.front().id == "E0110";
  if (other_kind) return judge_scenario(parts.files.front(), arguments, options);
  std::vector<std::string> notes;
  if (outcome.loaded) {
    WorkspaceLook look = look_at_workspace(outcome.loaded->spec, outcome.loaded->tree, outcome.sources);
    outcome.diagnostics = std::move(look.faults);
    notes = std::move(look.notes);
  }
  Judged out = judged(outcome, options);
  out.notes.insert(out.notes.end(), notes.begin(), notes.end());
  return out;
}

// `path` is not written where -f alone names the files.
bool validate_one(const std::optional<std::string>& path, const Arguments& arguments, const Terminal& terminal) {
  const bool json = arguments.has("json");
  const TakenParts taken = take_parts(path, arguments);
  const std::string typed = path ? *path : arguments.value("file").value_or("");
  const std::string name = typed == kStdinPath ? std::string(kStdinName) : typed;
  if (!taken.parts) {
    show_complaints(name, taken.complaints, json, terminal);
    return false;
  }
  const Judged found = judge(*taken.parts, arguments, {.colour = terminal.err_colour});
  if (json) {
    std::string lines;
    for (const Diagnostic& diagnostic : found.diagnostics) lines += to_json(diagnostic_json(diagnostic)) + "\n";
    write_out(terminal, lines + to_json(result_json(name, found.valid)) + "\n");
    return found.valid;
  }
  write_err(found.shown);
  if (!found.valid) return false;
  write_out(terminal, text(printable(name), ": valid\n"));
  for (const std::string& note : found.notes) say_note(terminal, note);
  return true;
}

int run_validate(const Arguments& arguments, Context& context) {
  bool valid = true;
  const std::vector<std::string>& paths = arguments.positionals();
  const std::vector<std::string> over = arguments.values("file");
  const auto from_stdin = std::count(paths.begin(), paths.end(), kStdinPath) +
                          (paths.size() > 1 ? 2 * std::count(over.begin(), over.end(), kStdinPath) : 0);
  if (from_stdin > 1) {
    show_complaints(std::string(kStdinName), {stdin_is_read_once()}, arguments.has("json"), context.terminal);
    return kExitUsage;
  }
  if (paths.empty()) valid = validate_one(std::nullopt, arguments, context.terminal);
  for (const std::string& path : paths) valid = validate_one(path, arguments, context.terminal) && valid;
  return valid ? kExitOk : kExitUsage;
}

}  // namespace

Command validate_command() {
  std::vector<Flag> flags = {
      {.name = "json", .value = "", .help = "one object per line: diagnostics, then the result of each file"}};
  for (const Flag& flag : overlay_flags()) flags.push_back(flag);
  return {.name = "validate",
          .summary = "check specs without starting anything: exit code 0, or 2 with all that is wrong",
          .description = "A scenario of a drill is checked, too, against the job that it names.",
          .flags = std::move(flags),
          .positionals = {{.name = "SPEC",
                           .help = "a YAML file; - for standard input",
                           .required = true,
                           .many = true,
                           .unless = {"file"}}},
          .run = run_validate};
}

}  // namespace monarch
