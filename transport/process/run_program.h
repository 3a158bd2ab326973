#pragma once

// run_program(): a program that says something and ends, such as a command of Slurm's, waited for no longer than it may
// take.
//
// Thread: the main thread of its process, and the only one (it forks).

#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/time.h"

namespace monarch {

struct RunProgramOptions {
  Duration deadline = Duration::seconds(10);
  std::size_t bytes = 1U << 20U;  // of what it says; more is an error
  int interrupt = -1;             // readable: nobody wants the answer any more
  // Variables of this process that it does not get: by name, or with a `*` behind them by how they begin.
  std::vector<std::string> without = {};
};

// What it wrote to its standard output, where it ended with 0. kUnsupported with what it said otherwise, kNotFound:
// there is no such program, kTimeout: it was killed, kGone: `interrupt` was readable first, and it was killed.
Result<std::string> run_program(const std::vector<std::string>& words, const RunProgramOptions& options = {});

}  // namespace monarch
