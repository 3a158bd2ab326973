#pragma once

// What the library says in words: lines of its own in the output of its rank, and what is published.
//
// Thread: any.

#include <string>

#include "transport/tensor/core/index.h"

namespace monarch {

// On standard error, in one piece.
void say_line(const std::string& words);

// {"tensors": [{"name": …, "dtype": "float32", "shape": […]}, …]}
std::string describe_index(const tensor::Index& index);

}  // namespace monarch
