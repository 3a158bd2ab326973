#pragma once

// A spec, from its files and flags to the JobSpec that the cores work with. All faults are found in one go; a spec with
// a fault yields no job. It knows nothing about running one.
//
// Thread: pure functions but read_spec_file, read_spec_stdin, read_hosts_text and users_surroundings, which ask the
// system and may block.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/flag_text.h"
#include "supervisor/spec/plugin_hashes.h"
#include "supervisor/spec/schema/schema.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"
#include "transport/base/result.h"

namespace monarch {

inline constexpr Duration kPipePatience = Duration::seconds(30);  // until a pipe that is a spec has ended

struct SpecSource {
  std::string name;        // as typed; what messages call it
  std::string text;        // its bytes
  std::string directory;   // absolute: what relative paths in it start from
  bool is_stream = false;  // standard input or a pipe: nobody can read it again
};

// What makes up one spec. Each part lies over the parts before it.
struct SpecParts {
  std::vector<SpecSource> files;  // at least one; relative paths start from the folder of the first
  std::vector<FlagText> settings;
  std::optional<FlagText> launch;
  std::optional<ExtraArguments> arguments;
};

// What a spec may mean that does not stand in it.
struct SpecSurroundings {
  std::string home{};  // absolute; what `~` stands for in paths of this machine; empty: it stays as it is
  // The text of `launch.ssh.hosts_file`, by its whole path; nothing: a spec that names one is refused.
  std::function<Result<std::string>(const std::string& path)> read_hosts{};
  // Where a whole path leads in the end, past links; nothing: there are none.
  std::function<std::string(const std::string& path)> real_path{};
  // The allocation of Slurm that this process is in, for `launch.slurm`; nothing: it is in none.
  std::function<Result<std::optional<Allocation>>()> find_allocation{};
  bool says_no_kill = false;  // SLURM_NO_KILL, as of srun(1): whoever asked for it says that it was with --no-kill
  // The GPUs of this machine that the user's CUDA_VISIBLE_DEVICES leaves, for dimensions that are `auto`; nothing: it
  // has none.
  std::function<std::uint32_t()> count_gpus{};
  // The sha256 of a plugin, by its whole path, in hexadecimal digits; nothing: a spec may name plugins that are not
  // there.
  HashFile hash_plugin{};
  UnbuiltKeys unbuilt = UnbuiltKeys::kRefuse;
};

struct LoadedSpec {
  JobSpec spec;
  std::vector<std::string> notes;  // values that are not used, and why; `run` and `plan` say them once
  std::string text;  // the whole spec as one file: the only file's own bytes, or the parts and the hosts_file merged
  YamlNode tree;     // what is written, with places in the outcome's sources
};

struct SpecText {
  std::string name;
  std::string text;
};

struct SpecOutcome {
  std::optional<LoadedSpec> loaded;     // nothing if there is an error below
  std::vector<Diagnostic> diagnostics;  // in the order of the texts
  std::vector<SpecText> sources;        // what Diagnostic::source counts
};

// A file, or a pipe, which has `patience` to end and whose relative paths start from the working directory; a device is
// kUnsupported. The error names the path and what the system answered. Of more than limits::kSpecBytes enough is read
// for load_spec to refuse it. `called`: what the file is, in that error: "spec".
Result<SpecSource> read_spec_file(const std::string& path, Duration patience = kPipePatience,
                                  std::string_view called = "spec");

// All that `fd`, standard input, has up to its end, with the same limit: it may be a pipe, and is waited for, but no
// terminal. Relative paths in it start from the working directory.
Result<SpecSource> read_spec_stdin(int fd);
inline constexpr std::string_view kStdinName = "<stdin>";  // what messages call it

// Of `launch.ssh.hosts_file`; likewise.
Result<std::string> read_hosts_text(const std::string& path);
// Of whoever runs this process: $HOME, else what the system says, and the disk. `hashing`: how long a plugin may take.
SpecSurroundings users_surroundings(Duration hashing = Duration::forever());
inline constexpr Duration kHashToLook = Duration::seconds(2);  // where no job begins

SpecOutcome load_spec(const SpecParts& parts, const SpecSurroundings& around = {});
SpecOutcome load_spec(const SpecSource& source, const SpecSurroundings& around = {});

// Its diagnostics, as they are shown.
std::string render(const SpecOutcome& outcome, RenderOptions options = {});

}  // namespace monarch
