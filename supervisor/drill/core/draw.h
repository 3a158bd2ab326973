#pragma once

// What a drill leaves to chance: a pure function of its seed, of a fault's place in the scenario and of how often that
// fault was drawn before, so that a fault more or less does not move what the others are drawn. The generator is
// splitmix64 (Steele, Lea, Flood 2014).
//
// Thread: pure functions.

#include <cstddef>
#include <cstdint>

#include "transport/base/time.h"

namespace monarch::drill {

struct Draw {
  std::uint64_t seed = 0;
  std::uint32_t entry = 0;  // of the scenario's faults
  std::uint32_t count = 0;
};

// Exponential, of this mean; at most ten times that.
Duration draw_gap(const Draw& draw, Duration mean);
// In [0, size); size is not 0.
std::size_t draw_index(const Draw& draw, std::size_t size);

}  // namespace monarch::drill
