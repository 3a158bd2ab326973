#pragma once

// A command line from what was parsed of one: for running the same command on another machine, where neither this
// shell's variables nor its words are.
//
// Thread: pure functions.

#include <string>
#include <vector>

#include "cli/args/command.h"

namespace monarch {

// The command's name, its flags as `--flag=value`, and `positionals` behind them. `without`: flags that are not passed
// on.
std::vector<std::string> command_words(const Command& command, const Arguments& arguments,
                                       const std::vector<std::string>& positionals,
                                       const std::vector<std::string>& without = {});

}  // namespace monarch
