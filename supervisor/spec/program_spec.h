#pragma once

// The spec of a program that is run without one: `run -H a,b -n 8 -- python3 train.py`.
//
// Thread: pure functions.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/spec/spec.h"

namespace monarch {

struct ProgramLine {
  std::vector<std::string> program;
  std::optional<FlagText> size;    // "-n 8": all ranks together
  std::optional<FlagText> hosts;   // "-H a,b" or "-H a:4,b:4"
  std::optional<FlagText> launch;  // --launch says where they run
  std::string own_name;            // of this machine
  std::string directory;           // absolute; the working directory
};

// Its one mesh is `main`; its ranks are spread evenly over the hosts, without -H over those of --launch. Or what is
// wrong with the flags.
std::variant<SpecSource, SpecOutcome> spec_of_program(const ProgramLine& line);

// "train" of [/usr/bin/python3, train.py].
std::string job_name_of(const std::vector<std::string>& program);

}  // namespace monarch
