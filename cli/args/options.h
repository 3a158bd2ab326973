#pragma once

// From a command line to a Command and its Arguments. Long options are written in full; everything after `--` belongs
// to the program; every flag has a MONARCH_OPT_ variable, which a flag on the command line overrides; what is unknown
// is refused with the nearest thing that is known. CLI11 does the splitting, in options.cc alone.
//
// Thread: pure functions.

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/args/command.h"
#include "cli/args/say.h"
#include "cli/term/environment.h"

namespace monarch {

struct HelpWanted {
  const Command* command = nullptr;  // nullptr: the list of commands
};

struct Invocation {
  const Command* command = nullptr;
  Arguments arguments;
};

using ParsedLine = std::variant<Invocation, HelpWanted, Complaint>;

// `line` is argv without the program's name.
ParsedLine parse_command_line(const std::vector<Command>& commands, const std::vector<std::string>& line,
                              const Environment& env);

std::string help_text(const std::vector<Command>& commands);
std::string help_text(const Command& command);

}  // namespace monarch
