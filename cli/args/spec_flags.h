#pragma once

// What makes a spec: SPEC and -f, --set, --launch, and -n and -H for a program without one. They yield the parts that
// load_spec() puts together.
//
// Thread: the command's; it reads the files.

#include <optional>
#include <string>
#include <vector>

#include "cli/args/command.h"
#include "cli/args/say.h"
#include "supervisor/spec/spec.h"

namespace monarch {

// -f, --set and --launch.
std::vector<Flag> overlay_flags();
// These, -n, -H and --save, of a command that takes a program or its arguments behind `--`.
std::vector<Flag> program_flags();
// Whose program gets the arguments behind `--`.
Flag mesh_flag();

// SPEC of such a command.
Positional spec_positional();

inline constexpr std::string_view kStdinPath = "-";
Complaint stdin_is_read_once();

struct TakenParts {
  std::optional<SpecParts> parts;
  std::vector<Complaint> complaints;  // why there are none,
  SpecOutcome refused;                // or what is wrong with -n and -H
};
// `spec` is SPEC, or - for standard input; nothing: it was not written.
TakenParts take_parts(const std::optional<std::string>& spec, const Arguments& arguments);

}  // namespace monarch
