#include "cli/args/spec_flags.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <filesystem>
#include <utility>

#include "supervisor/spec/program_spec.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

FlagText flag_text(const Arguments& arguments, std::string_view flag, std::string_view shown,
                   const std::string& value) {
  const bool variable = arguments.from_variable(flag);
  const std::string front = variable ? text(option_variable(flag), "=") : text(shown, " ");
  FlagText out{.text = text(front, value), .begin = front.size()};
  if (variable) out.from = "environment";
  return out;
}

std::optional<FlagText> flag_text(const Arguments& arguments, std::string_view flag, std::string_view shown) {
  const auto value = arguments.value(flag);
  return value ? std::optional(flag_text(arguments, flag, shown, *value)) : std::nullopt;
}

Complaint misused(std::string message, std::string help) {
  return {.id = "E0903", .message = std::move(message), .help = std::move(help)};
}

std::string own_host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

// What lies over the files is the same with and without them.
SpecParts flags_over(const Arguments& arguments) {
  SpecParts parts;
  for (const std::string& value : arguments.values("set")) {
    parts.settings.push_back(flag_text(arguments, "set", "--set", value));
  }
  if (const auto input = arguments.value("stdin")) {
    parts.settings.push_back(flag_text(arguments, "stdin", "--stdin", text("stdin=", *input)));
  }
  parts.launch = flag_text(arguments, "launch", "--launch");
  return parts;
}

// The file of the same folder that may have been meant by a path that is not there; empty: none.
std::string nearest_file(const std::string& path) {
  constexpr std::size_t kMostLookedAt = 1000;
  const std::filesystem::path typed(path);
  const std::string name = typed.filename().string();
  std::vector<std::string> names;
  std::error_code error;
  const std::filesystem::path folder = typed.has_parent_path() ? typed.parent_path() : ".";
  for (std::filesystem::directory_iterator entry(folder, error), end;
       !error && entry != end && names.size() < kMostLookedAt; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());  // a folder has no order
  std::optional<std::string> found;
  for (const char* ending : {".yaml", ".yml"}) {
    if (!found && std::binary_search(names.begin(), names.end(), name + ending)) found = name + ending;
  }
  if (!found) found = nearest(name, names);
  return found ? (typed.parent_path() / *found).string() : "";
}

// What else the path may have been meant for: a stream is refused, and `-` reads one.
std::string way_out(const std::string& path, ErrorCode why) {
  if (path == kStdinPath) return "send it a spec: monarch validate - < mesh.yaml";
  if (why == ErrorCode::kNotFound) {
    const std::string meant = nearest_file(path);
    return meant.empty() ? "" : text("did you mean `", printable(meant), "`?");
  }
  return why == ErrorCode::kUnsupported ? "`-` reads a spec from standard input, to its end" : "";
}

TakenParts parts_of_program(const Arguments& arguments) {
  TakenParts taken;
  if (!arguments.program() || arguments.program()->empty()) {
    taken.complaints.push_back(misused("`-n` and `-H` start a program without a spec, and there is none behind `--`",
                                       "monarch run -n 4 -- python3 train.py"));
    return taken;
  }
  if (arguments.value("mesh").value_or("main") != "main") {
    taken.complaints.push_back({.id = "E0904",
                                .message = text("--mesh ", printable(*arguments.value("mesh")), ": no such mesh"),
                                .help = "without a spec the one mesh is called `main`"});
    return taken;
  }
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (error) {
    taken.complaints.push_back(
        {.id = "E0013", .message = text("the working directory: ", error.message()), .help = ""});
    return taken;
  }
  auto made = spec_of_program({.program = *arguments.program(),
                               .size = flag_text(arguments, "size", "-n"),
                               .hosts = flag_text(arguments, "hosts", "-H"),
                               .launch = flag_text(arguments, "launch", "--launch"),
                               .own_name = own_host_name(),
                               .directory = here.string()});
  if (auto* refused = std::get_if<SpecOutcome>(&made)) {
    taken.refused = std::move(*refused);
    return taken;
  }
  taken.parts = flags_over(arguments);
  taken.parts->files.push_back(std::move(std::get<SpecSource>(made)));
  return taken;
}

}  // namespace

std::vector<Flag> overlay_flags() {
  return {{.name = "file",
           .value = "FILE",
           .help = "lay this spec over SPEC and those before it: maps merge, the rest is replaced",
           .letter = 'f',
           .repeatable = true},
          {.name = "set",
           .value = "PATH=VALUE",
           .help = "set one key, such as supervision.lease=8s, after all files",
           .repeatable = true},
          {.name = "launch",
           .value = "WHERE",
           .help = "instead of `launch`: local, local:N for N virtual hosts, ssh:HOSTS, slurm:N or command:HOSTS"}};
}

Flag mesh_flag() { return {.name = "mesh", .value = "MESH", .help = "whose program gets what follows `--`"}; }

std::vector<Flag> program_flags() {
  std::vector<Flag> flags = overlay_flags();
  flags.push_back({.name = "size", .value = "N", .help = "without SPEC: so many ranks of the program", .letter = 'n'});
  flags.push_back({.name = "hosts",
                   .value = "HOSTS",
                   .help = "without SPEC: on these hosts, a,b or node[01-20] or a:4,b:4",
                   .letter = 'H'});
  flags.push_back({.name = "save", .value = "FILE", .help = "write the spec that this is, as one file"});
  return flags;
}

Positional spec_positional() {
  return {.name = "SPEC",
          .help = "a YAML file; - for standard input",
          .required = true,
          .unless = {"file", "size", "hosts"}};
}

Complaint stdin_is_read_once() {
  return misused("`-` is standard input, which can be read only once", "write all but one into files");
}

TakenParts take_parts(const std::optional<std::string>& spec, const Arguments& arguments) {
  std::vector<std::string> paths = arguments.values("file");
  if (spec) paths.insert(paths.begin(), *spec);
  if (paths.empty()) return parts_of_program(arguments);
  TakenParts taken;
  for (const auto& [flag, letter] : {std::pair("size", "-n"), std::pair("hosts", "-H")}) {
    if (!arguments.has(flag)) continue;
    const std::string written = arguments.from_variable(flag) ? option_variable(flag) : letter;
    const std::string shown = printable(paths.front());
    std::string help = "`--set meshes.MESH.dims.DIM=N` changes the size of a mesh";
    if (spec && !arguments.program()) help = text("the program follows `--`: monarch run -n 4 -- ", shown);
    if (arguments.from_variable(flag)) help = "unset it";
    taken.complaints.push_back(
        misused(text("`", written, "` is for a program without a spec, and `", shown, "` is taken for one"), help));
  }
  if (std::count(paths.begin(), paths.end(), kStdinPath) > 1) taken.complaints.push_back(stdin_is_read_once());
  SpecParts parts = flags_over(arguments);
  if (!taken.complaints.empty()) return taken;  // that it cannot be read would mislead
  for (const std::string& path : paths) {
    auto source = path == kStdinPath ? read_spec_stdin(STDIN_FILENO) : read_spec_file(path);
    if (source.ok()) {
      parts.files.push_back(std::move(*source));
    } else {
      taken.complaints.push_back(
          {.id = "E0013", .message = source.error().message, .help = way_out(path, source.error().code)});
    }
  }
  if (arguments.program() && !arguments.program()->empty()) {
    parts.arguments = ExtraArguments{.words = *arguments.program(), .mesh = arguments.value("mesh").value_or("")};
  }
  if (taken.complaints.empty()) taken.parts = std::move(parts);
  return taken;
}

}  // namespace monarch
