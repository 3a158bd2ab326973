#pragma once

// SeedProgram: the command line of a simulation that is run by seed.
//
//   NAME --seed N [--wrong NAME] [--trace]           one seed, with what broke and the last events
//   NAME --seeds A..B [--wrong NAME] [--twice]       every seed of a range; --twice: each must give one hash
//   NAME --mutants [--most N]                        each planted bug must be caught within its number of seeds, where
//                                                    that is not more than N
//
// MONARCH_SIM_SEEDS=N shortens a range to its first N seeds.
//
// Thread: main; `run` is called in as many threads as there are processors.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "transport/base/time.h"

namespace monarch::sim {

struct SeedResult {
  bool passed = true;
  std::string label;  // of what broke
  std::string message;
  std::string last_lines;
  std::uint64_t hash = 0;
  Duration simulated;
  std::uint64_t counted = 0;
};

struct PlantedBug {
  const char* name;
  std::uint64_t seeds;  // within which it is caught
  const char* label;    // by this; nullptr: by any
};

struct SeedProgram {
  const char* name;
  const char* counted;  // what SeedResult::counted counts
  std::vector<PlantedBug> bugs;
  // `bug`: 0 is none, else one more than its place in bugs.
  std::function<SeedResult(std::uint64_t seed, std::size_t bug, bool print)> run;

  int main(int argc, char** argv) const;
};

}  // namespace monarch::sim
