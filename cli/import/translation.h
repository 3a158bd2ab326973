#pragma once

// Translation: what a command line of another launcher asks for, in words of a spec. What cannot be carried over is a
// note of it, and never left out in silence.
//
// Thread: values.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/args/say.h"
#include "cli/import/shell_words.h"

namespace monarch {

struct DefaultVariable {
  std::string name;
  std::string value;
  std::string_view note;  // behind it in the spec; may be empty
};

struct Translation {
  std::string launcher;  // "torchrun"
  std::string job;       // a name, or empty: from the program's
  std::string mesh = "trainer";
  std::uint32_t hosts = 1;
  bool in_path = false;  // it is a torchrun that PATH finds, and its script runs under the python of that
  bool hosts_written = false;
  std::string per_host = "1";  // a number; until translate_line() has counted them auto, gpu or cpu, too
  std::vector<ShellWord> program;
  std::vector<std::pair<std::string, ShellWord>> env;
  std::vector<DefaultVariable> defaults;                   // what the launcher sets where nobody else did
  std::vector<std::pair<std::string, std::string>> place;  // variables by which the launcher tells a program its place
  std::vector<std::string> env_pass;
  std::optional<ShellWord> workdir;
  std::map<std::string, std::string> keys;  // of a row of the schema, "meshes.*.resources.gpus", to its value
  std::vector<std::string> host_names;
  std::vector<std::string> notes;
};

using TranslatedLine = std::variant<Translation, Complaint>;

// Of what torchrun counts where no number is written.
struct MachineCounts {
  std::uint32_t processors = 1;
  // By CUDA_VISIBLE_DEVICES as the line sets it, else as the shell does.
  std::function<std::uint32_t(const std::optional<std::string>& visible_devices)> gpus{};
};

// torchrun, python -m torch.distributed.run, srun or mpirun, with assignments in front.
TranslatedLine translate_line(std::string_view line, const MachineCounts& machine = {});

// Each launcher's own: the words behind its name. `python` runs the script of a torchrun.
TranslatedLine translate_torchrun(std::vector<ShellWord> words, const std::string& python);
TranslatedLine translate_torch_launch(std::vector<ShellWord> words, const std::string& python);
TranslatedLine translate_srun(std::vector<ShellWord> words);
TranslatedLine translate_mpirun(std::vector<ShellWord> words);

// The program that srun or mpirun would start may be a launcher, too: what `outer` asks for, started by that one.
TranslatedLine translate_inner(Translation outer);

// A variable that the shell sets is none of the launcher's defaults any more: the ranks have `value` of it from the
// shell.
void leave_to_shell(Translation& translation, const std::string& name, const std::string& value);
// `interpreter` is the python that the torchrun of PATH is written for, where that is not the python3 of PATH.
void use_interpreter(Translation& translation, const std::string& interpreter);

// Whether the hosts that the line names can be reached; the others are virtual ones of this machine.
bool reaches_hosts(const Translation& translation);
// Whether this build does what the key says; `path` is that of a row.
bool is_honoured_here(const std::string& path, const std::string& value);
// The spec, with a comment that says what it was made of and what is missing. `line` is what was typed.
std::string spec_of(const Translation& translation, std::string_view line);

}  // namespace monarch
