#pragma once

// A spec as a command takes it: read from its files and flags, checked, and its faults shown.
//
// Thread: the command's.

#include <optional>
#include <string>
#include <vector>

#include "cli/args/command.h"
#include "cli/term/environment.h"
#include "cli/term/terminal.h"
#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/spec.h"
#include "transport/base/result.h"

namespace monarch {

struct SpecInput {
  JobSpec spec;
  std::vector<std::string> notes;  // values that are not used, and why
  std::string name;                // of the first file, as typed
  std::string text;                // the whole spec as one file
  std::string directory;           // absolute; of the first file
  std::string origin{};  // of its files and flags, as spec_origin.h writes it; empty: not all of them are files
  YamlNode tree;         // the spec, with places in the sources
  std::vector<SpecText> sources;  // its files and flags
};

// Nothing: stderr says why, and the command exits 2.
// `hashing`: how long reading one of its plugins may take.
std::optional<SpecInput> take_spec(const Arguments& arguments, const Context& context,
                                   Duration hashing = Duration::forever());
// Of a command whose SPEC is not its first argument; nothing: it was not written.
std::optional<SpecInput> take_spec(const std::optional<std::string>& spec, const Arguments& arguments,
                                   const Context& context, Duration hashing = Duration::forever());
std::optional<SpecInput> take_spec(const std::string& path, const Terminal& terminal);

// False: it uses a variable of this shell that is not set, and stderr says which.
bool has_its_variables(const SpecInput& input, const Environment& shell, const Terminal& terminal);

// The spec of a job that was started with it.
Result<JobSpec> parse_stored_spec(const std::string& text, const std::string& directory);

}  // namespace monarch
