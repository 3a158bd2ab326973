#include "cli/spec_input.h"

#include "cli/say.h"
#include "supervisor/spec/spec.h"
#include "transport/base/text.h"

namespace monarch {

std::optional<SpecInput> take_spec(const std::string& path, const Terminal& terminal) {
  auto source = read_spec_file(path);
  if (!source.ok()) {
    say_error(terminal, {.id = "E0013", .message = source.error().message, .help = ""});
    return std::nullopt;
  }
  SpecOutcome outcome = load_spec(*source);
  if (!outcome.diagnostics.empty()) {
    write_err(render(outcome.diagnostics, source->text, {.colour = terminal.err_colour}));
  }
  if (!outcome.loaded) return std::nullopt;
  return SpecInput{.spec = std::move(outcome.loaded->spec),
                   .notes = std::move(outcome.loaded->notes),
                   .name = path,
                   .text = std::move(source->text),
                   .directory = std::move(source->directory)};
}

Result<JobSpec> parse_stored_spec(const std::string& text_of_spec, const std::string& directory) {
  SpecOutcome outcome = load_spec({.name = "spec.yaml", .text = text_of_spec, .directory = directory});
  if (outcome.loaded) return std::move(outcome.loaded->spec);
  return Error{ErrorCode::kInvalid, text("the job's spec.yaml is not valid for this build: ",
                                         outcome.diagnostics.empty() ? "" : outcome.diagnostics.front().message)};
}

}  // namespace monarch
