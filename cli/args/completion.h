#pragma once

// Completion of a command line: what could stand where the cursor is, from the tables of the commands and from what is
// there (jobs, meshes, hosts). The scripts for the shells ask `monarch complete` for every word and know nothing
// themselves.
//
// Thread: pure functions but for `Sources`, which the caller gives.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/args/command.h"

namespace monarch {

struct Candidate {
  std::string word;
  std::string about = {};  // one line; may be empty
};

enum class Files : std::uint8_t { kNone, kAny, kFolders };

struct Completion {
  std::vector<Candidate> candidates;
  Files files = Files::kNone;  // the shell adds names of files
};

// What is there. `subject` is the JOB or SPEC that the line names, or empty.
struct Sources {
  std::function<std::vector<Candidate>()> jobs;
  std::function<std::vector<std::string>(const Positional& kind, const std::string& subject)> meshes;
  std::function<std::vector<std::string>(const Positional& kind, const std::string& subject)> hosts;
  std::function<std::vector<std::string>(const Positional& kind, const std::string& subject)> dimensions;
};

// `words` are those after `monarch`, up to the one that is being written, which may be empty. bash hands `--flag=value`
// over as three.
Completion complete(const std::vector<Command>& commands, const std::vector<std::string>& words,
                    const Sources& sources);

// One candidate per line, with a tab before what it is about; the last line is `:none`, `:files` or `:folders`.
std::string completion_lines(const Completion& completion);

std::vector<std::string> completion_shells();
// Empty for a shell that is not known.
std::string completion_script(std::string_view shell);

}  // namespace monarch
