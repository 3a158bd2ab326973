#pragma once

// incarnation_text: one process of a rank, as violations name it: "0/3 generation 1.2".
//
// Thread: pure.

#include <string>

#include "transport/base/text.h"
#include "worker/core/keeper_actions.h"

namespace monarch::sim {

inline std::string incarnation_text(const Incarnation& key) {
  return text(key.rank.mesh.value(), "/", key.rank.rank.value(), " generation ", key.generation.term.value(), ".",
              key.generation.counter);
}

}  // namespace monarch::sim
