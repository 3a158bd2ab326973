#pragma once

// shards_of(): the parts of one tensor of an index, as make_plan() takes them.
//
// Thread: a pure function.

#include <cstdint>
#include <vector>

#include "transport/tensor/core/index.h"
#include "transport/tensor/core/plan.h"

namespace monarch::tensor {

inline std::vector<Shard> shards_of(const Index& index, std::uint32_t tensor) {
  std::vector<Shard> shards;
  for (const TensorPart& part : index.parts) {
    if (part.tensor == tensor) shards.push_back({.box = part.box, .owner = part.owner, .offset = part.offset});
  }
  return shards;
}

}  // namespace monarch::tensor
