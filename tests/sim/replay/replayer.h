#pragma once

// What a recording is for: its events are given to cores of this tree, and what these answer is held against what the
// recorded ones did. Nothing else of a simulation runs.
//
// Thread: a pure function.

#include <optional>
#include <string>

#include "tests/sim/mutants.h"
#include "tests/sim/replay/recording.h"

namespace monarch::sim {

// The first step at which they differ, and in what, in a few lines; nothing: in none. `mutant`: the core is made of a
// spec with this planted bug.
std::optional<std::string> first_difference(const Recording& recording, Mutant mutant = Mutant::kNone);

}  // namespace monarch::sim
