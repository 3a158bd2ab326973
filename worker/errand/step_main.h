#pragma once

// `monarch-worker step`: a worker in a step of Slurm that has a process on each of its nodes. It becomes a keeper as
// any other, once it has taken its own Bootstrap out of what all of them read; what the keeper and its daemon answer is
// written as lines of this node (step_lines.h).
//
//   out: "@<node> ready"
//   in:  lines for any node; those of this one carry a frame
//   out: lines that carry the frame of the answer
//
// Thread: the process's one.

#include <string>
#include <vector>

namespace monarch {

// After `step`: --job UUID --host NAME. Does not return where a worker begins.
int step_main(const std::vector<std::string>& arguments);

}  // namespace monarch
