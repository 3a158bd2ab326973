#pragma once

// Splits a command line as a POSIX shell does: quotes, backslashes, comments and continued lines. It expands nothing:
// what a shell would replace, run or redirect is refused or marked, so that nobody takes it for what the program was
// given.
//
// Thread: pure functions.

#include <string>
#include <string_view>
#include <vector>

#include "transport/base/result.h"

namespace monarch {

struct ShellWord {
  std::string text;
  bool expands = false;        // has a $ that a shell would have replaced
  char pattern = '\0';         // has this one of * ? [ without quotes: it may stand for names of files
  std::size_t pattern_at = 0;  // and where in the line, from 1
  bool operator==(const ShellWord&) const = default;
};

// The error says what is wrong and at which character.
Result<std::vector<ShellWord>> split_shell_words(std::string_view line);

// "NAME=value" in front of a command.
bool is_assignment(const ShellWord& word);

}  // namespace monarch
