#include "cli/job/spec_input.h"

#include <algorithm>

#include "cli/args/say.h"
#include "cli/args/spec_flags.h"
#include "cli/job/save_spec.h"
#include "cli/job/spec_origin.h"
#include "supervisor/core/spec/expansion.h"
#include "supervisor/spec/spec.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::optional<SpecInput> loaded(const SpecParts& parts, const Terminal& terminal,
                                Duration hashing = Duration::forever()) {
  SpecOutcome outcome = load_spec(parts, users_surroundings(hashing));
  if (!outcome.diagnostics.empty()) write_err(render(outcome, {.colour = terminal.err_colour}));
  if (!outcome.loaded) return std::nullopt;
  return SpecInput{.spec = std::move(outcome.loaded->spec),
                   .notes = std::move(outcome.loaded->notes),
                   .name = parts.files.front().name,
                   .text = std::move(outcome.loaded->text),
                   .directory = parts.files.front().directory,
                   .tree = std::move(outcome.loaded->tree),
                   .sources = std::move(outcome.sources)};
}

}  // namespace

std::optional<SpecInput> take_spec(const Arguments& arguments, const Context& context, Duration hashing) {
  const std::vector<std::string>& written = arguments.positionals();
  return take_spec(written.empty() ? std::nullopt : std::optional(written.front()), arguments, context, hashing);
}

std::optional<SpecInput> take_spec(const std::optional<std::string>& spec, const Arguments& arguments,
                                   const Context& context, Duration hashing) {
  const TakenParts taken = take_parts(spec, arguments);
  for (const Complaint& complaint : taken.complaints) say_error(context.terminal, complaint);
  if (!taken.refused.diagnostics.empty()) {
    write_err(render(taken.refused, {.colour = context.terminal.err_colour}));
  }
  if (!taken.parts) return std::nullopt;
  std::optional<SpecInput> input = loaded(*taken.parts, context.terminal, hashing);
  // A stream is no longer there to be compared with.
  const auto is_stream = [](const SpecSource& source) { return source.is_stream; };
  const auto& files = taken.parts->files;
  const bool kept = std::none_of(files.begin(), files.end(), is_stream);
  if (input && kept && (spec || arguments.has("file"))) input->origin = write_origin(*taken.parts);
  if (!input || !arguments.has("save")) return input;
  const std::string path = *arguments.value("save");
  const Status saved = save_spec(path, {.text = input->text, .directory = input->directory});
  if (saved.ok()) return input;
  say_error(context.terminal, {.id = "E0904", .message = text("--save: ", saved.error().message), .help = ""});
  return std::nullopt;
}

std::optional<SpecInput> take_spec(const std::string& path, const Terminal& terminal) {
  auto source = read_spec_file(path);
  if (source.ok()) {
    SpecParts parts;
    parts.files.push_back(std::move(*source));
    return loaded(parts, terminal);
  }
  say_error(terminal, {.id = "E0013", .message = source.error().message, .help = ""});
  return std::nullopt;
}

bool has_its_variables(const SpecInput& input, const Environment& shell, const Terminal& terminal) {
  bool all = true;
  for (const std::string& name : shell_variables(input.spec)) {
    if (shell.has(name)) continue;
    all = false;
    say_error(terminal,
              {.id = "E0216",
               .message = text(printable(input.name), " uses $(env.", name, "), which is not set in this shell"),
               .help = text("export ", name, "=VALUE")});
  }
  return all;
}

Result<JobSpec> parse_stored_spec(const std::string& text_of_spec, const std::string& directory) {
  SpecOutcome outcome =
      load_spec({.name = "spec.yaml", .text = text_of_spec, .directory = directory}, users_surroundings());
  if (outcome.loaded) return std::move(outcome.loaded->spec);
  return Error{ErrorCode::kInvalid, text("the job's spec.yaml is not valid for this build: ",
                                         outcome.diagnostics.empty() ? "" : outcome.diagnostics.front().message)};
}

}  // namespace monarch
