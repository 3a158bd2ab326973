#include <algorithm>

#include "cli/args/say.h"
#include "cli/args/spec_flags.h"
#include "cli/commands.h"
#include "cli/start/workspace_check.h"
#include "supervisor/spec/spec.h"
#include "transport/base/exit_code.h"
#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

Json diagnostic_json(const Diagnostic& diagnostic) {
  return Json::object({{"v", 1},
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
  SpecOutcome outcome = load_spec(*taken.parts, users_surroundings(kHashToLook));
  std::vector<std::string> notes;
  if (outcome.loaded) {
    WorkspaceLook look = look_at_workspace(outcome.loaded->spec, outcome.loaded->tree, outcome.sources);
    outcome.diagnostics = std::move(look.faults);
    notes = std::move(look.notes);
  }
  const bool valid = outcome.loaded && outcome.diagnostics.empty();
  if (json) {
    std::string lines;
    for (const Diagnostic& diagnostic : outcome.diagnostics) lines += to_json(diagnostic_json(diagnostic)) + "\n";
    write_out(terminal, lines + to_json(result_json(name, valid)) + "\n");
    return valid;
  }
  write_err(render(outcome, {.colour = terminal.err_colour}));
  if (!valid) return false;
  write_out(terminal, text(printable(name), ": valid\n"));
  notes.insert(notes.begin(), outcome.loaded->notes.begin(), outcome.loaded->notes.end());
  for (const std::string& note : notes) say_note(terminal, note);
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
          .description = "",
          .flags = std::move(flags),
          .positionals = {{.name = "SPEC",
                           .help = "a YAML file; - for standard input",
                           .required = true,
                           .many = true,
                           .unless = {"file"}}},
          .run = run_validate};
}

}  // namespace monarch
