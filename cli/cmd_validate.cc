#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/say.h"
#include "supervisor/spec/spec.h"
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

bool validate_one(const std::string& path, bool json, const Terminal& terminal) {
  const auto source = read_spec_file(path);
  if (!source.ok()) {
    const Complaint complaint{.id = "E0013", .message = source.error().message, .help = ""};
    if (json) {
      const Diagnostic diagnostic{
          .id = complaint.id, .file = path, .message = complaint.message, .label = "", .help = ""};
      write_out(to_json(diagnostic_json(diagnostic)) + "\n" + to_json(result_json(path, false)) + "\n");
    } else {
      say_error(terminal, complaint);
    }
    return false;
  }
  const SpecOutcome outcome = load_spec(*source);
  const bool valid = outcome.loaded.has_value();
  if (json) {
    std::string lines;
    for (const Diagnostic& diagnostic : outcome.diagnostics) lines += to_json(diagnostic_json(diagnostic)) + "\n";
    write_out(lines + to_json(result_json(path, valid)) + "\n");
    return valid;
  }
  write_err(render(outcome.diagnostics, source->text, {.colour = terminal.err_colour}));
  if (!valid) return false;
  write_out(text(printable(path), ": valid\n"));
  for (const std::string& note : outcome.loaded->notes) say_note(terminal, note);
  return true;
}

int run_validate(const Arguments& arguments, Context& context) {
  bool valid = true;
  for (const std::string& path : arguments.positionals()) {
    valid = validate_one(path, arguments.has("json"), context.terminal) && valid;
  }
  return valid ? kExitOk : kExitUsage;
}

}  // namespace

Command validate_command() {
  return {.name = "validate",
          .summary = "check specs without starting anything: exit code 0, or 2 with all that is wrong",
          .description = "",
          .flags = {{.name = "json",
                     .value = "",
                     .help = "one object per line: diagnostics, then the result of each file"}},
          .positionals = {{.name = "SPEC", .help = "a YAML file", .required = true, .many = true}},
          .run = run_validate};
}

}  // namespace monarch
