#pragma once

// Guesses what a key or a word that does not exist was meant to be: a known synonym, a small slip of the fingers, or a
// key that belongs elsewhere. It never decides anything; its answers go into help lines.
//
// Thread: pure functions.

#include <string>
#include <string_view>

#include "supervisor/spec/schema/schema.h"

namespace monarch {

// The help line for an unknown `key` below the row `path`: "did you mean `heartbeat`?"
std::string suggest_key(const Schema& schema, std::string_view path, std::string_view key);

// A row's path as `monarch explain` takes it: "drill.faults.[].for"; of the top level, what all keys begin with.
std::string explained_path(const Schema& schema, std::string_view path);

// The list that was meant by `program: "a b"`: "[a, b]", or a shell's command line if only a shell understands it.
std::string as_program_list(std::string_view command_line);

}  // namespace monarch
