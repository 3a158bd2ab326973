#pragma once

// Recordings in a folder, one file for each seed: `monarch-sim --record` writes them, and `--check` holds the cores of
// this tree against them.
//
// Thread: main; check_recordings() has as many threads as there are processors.

#include <cstdint>
#include <string>

#include "tests/sim/mutants.h"
#include "tests/sim/replay/recording.h"
#include "transport/base/result.h"

namespace monarch::sim {

Status write_recording(const std::string& directory, const Recording& recording);

struct CheckOptions {
  std::string directory;
  std::uint64_t first = 0;  // of the seeds whose recordings lie there
  std::uint64_t last = 0;
  Mutant mutant = Mutant::kNone;
};

// Prints the first seed that differs, with its first step that does. Returns the exit code: 0 none differs, 1 one does,
// 2 there is nothing to check.
int check_recordings(const CheckOptions& options);

}  // namespace monarch::sim
