#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "cli/args/say.h"
#include "cli/commands.h"
#include "cli/import/init_template.h"
#include "cli/import/translation.h"
#include "supervisor/spec/spec.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"
#include "transport/process/nvidia_gpus.h"

namespace monarch {

namespace {

constexpr std::string_view kDefaultFile = "mesh.yaml";

// False: stderr says why.
bool write_new_file(const std::string& path, std::string_view content, const Context& context) {
  const auto fail = [&](int error) {
    const std::string help = error == EEXIST ? "name another file, or `-` for stdout: nothing is overwritten" : "";
    say_error(
        context.terminal,
        {.id = "E0931", .message = text("cannot write ", printable(path), ": ", std::strerror(error)), .help = help});
    return false;
  };
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.valid()) return fail(errno);
  while (!content.empty()) {
    const ssize_t wrote = ::write(file.get(), content.data(), content.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const int error = errno;
      (void)::unlink(path.c_str());  // half a spec is none; if it cannot be removed, the message names it
      return fail(error);
    }
    content.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

// Launchers start in the folder where they are called, a spec in its own.
void keep_folder(Translation& translation, const std::string& path) {
  if (path == "-" || path.find('/') == std::string::npos) return;
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (error) return;  // then there is no folder to keep
  const std::string own = translation.workdir ? translation.workdir->text : std::string();
  translation.workdir = ShellWord{.text = (here / own).lexically_normal().string(), .expands = false};
  if (translation.workdir->text.size() > 1 && translation.workdir->text.ends_with('/'))
    translation.workdir->text.pop_back();
}

// The file that PATH means by a name; empty: none.
std::string in_path(std::string_view search_path, const std::string& name) {
  for (bool more = true; more;) {
    const std::size_t colon = search_path.find(':');
    std::string file = text(search_path.substr(0, colon), "/", name);
    const UniqueFd there(::open(file.c_str(), O_PATH | O_CLOEXEC));
    struct stat status {};
    if (there.valid() && ::fstat(there.get(), &status) == 0 && S_ISREG(status.st_mode)) return file;
    more = colon != std::string_view::npos;
    search_path.remove_prefix(more ? colon + 1 : search_path.size());
  }
  return "";
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error);  // false where one is not there
}

// What `#!/usr/bin/python3 -s` in torchrun's first line names, where python3 of PATH is another; empty: there is no
// such line.
std::string interpreter_of_torchrun(std::string_view search_path) {
  constexpr std::streamsize kLongest = 256;
  std::ifstream file(in_path(search_path, "torchrun"), std::ios::binary);
  std::array<char, kLongest> begin{};
  file.read(begin.data(), kLongest);
  std::string_view line(begin.data(), static_cast<std::size_t>(file.gcount()));
  line = line.substr(0, line.find('\n'));
  if (!line.starts_with("#!/")) return "";
  const std::string interpreter(line.substr(2, line.find_first_of(" \t\r", 2) - 2));
  const bool is_python = interpreter.find("/python", interpreter.rfind('/')) != std::string::npos;
  return is_python && !same_file(interpreter, in_path(search_path, "python3")) ? interpreter : "";
}

// What the launcher would have taken from this shell and this machine.
void take_surroundings(Translation& translation, const Environment& shell) {
  for (const DefaultVariable& own : std::vector(translation.defaults)) {
    if (shell.has(own.name)) leave_to_shell(translation, own.name, shell.get(own.name));
  }
  const std::string interpreter = interpreter_of_torchrun(shell.get("PATH"));
  if (!interpreter.empty()) use_interpreter(translation, interpreter);
}

MachineCounts counts_of_this_machine(const Environment& shell) {
  const auto gpus = [&shell](const std::optional<std::string>& written) {
    const bool set = !written && shell.has("CUDA_VISIBLE_DEVICES");
    wake_nvidia_gpus();
    const auto visible =
        visible_gpus(read_nvidia_gpus(), set ? std::optional(shell.get("CUDA_VISIBLE_DEVICES")) : written);
    return static_cast<std::uint32_t>(visible.size());
  };
  const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
  return {.processors = processors > 0 ? static_cast<std::uint32_t>(processors) : 1, .gpus = gpus};
}

// Nothing: stderr says why.
std::optional<std::string> translated_spec(const std::string& line, const std::string& path, const Context& context) {
  TranslatedLine translated = translate_line(line, counts_of_this_machine(context.env));
  if (const auto* complaint = std::get_if<Complaint>(&translated)) {
    say_error(context.terminal, *complaint);
    return std::nullopt;
  }
  auto& translation = std::get<Translation>(translated);
  take_surroundings(translation, context.env);
  keep_folder(translation, path);
  std::string spec = spec_of(translation, line);
  const SpecOutcome outcome = load_spec({.name = path, .text = spec, .directory = "/"});
  if (!outcome.loaded) {
    say_error(context.terminal,
              {.id = "E0933", .message = "the spec that this asks for is refused:", .help = "change the command line"});
    write_err(render(outcome.diagnostics, spec, {.colour = context.terminal.err_colour}));
    return std::nullopt;
  }
  for (const std::string& note : translation.notes)
    say_note(context.terminal, text("not carried over: ", printable(note)));
  return spec;
}

int run_init(const Arguments& arguments, Context& context) {
  const std::string path = arguments.positionals().empty() ? std::string(kDefaultFile) : arguments.positional(0);
  std::optional<std::string> spec = init_template();
  if (arguments.has("from")) spec = translated_spec(*arguments.value("from"), path, context);
  if (!spec) return kExitUsage;
  if (path == "-") {
    write_out(context.terminal, *spec);
    return kExitOk;
  }
  if (!write_new_file(path, *spec, context)) return kExitUsage;
  say_note(context.terminal, text("wrote ", printable(path), "; to run it: monarch run ", printable(path)));
  return kExitOk;
}

}  // namespace

Command init_command() {
  return {.name = "init",
          .summary = "write a spec to start from, or one that does what a command line of another launcher does",
          .description =
              "--from takes a command line of torchrun, python -m torch.distributed.run, srun or mpirun as one "
              "argument, with\n"
              "assignments in front. What cannot be carried over is said, and stands in a comment of the spec.",
          .flags = {{.name = "from", .value = "LINE", .help = "such as 'torchrun --nproc-per-node 4 train.py'"}},
          .positionals = {{.name = "FILE", .help = "which is not there yet; mesh.yaml without it; - for stdout"}},
          .run = run_init};
}

}  // namespace monarch
