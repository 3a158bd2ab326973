#pragma once

// How `monarch stacks` shows what it got: folded for people, a JSON object per rank, or as the debuggers wrote it.
//
// Thread: pure functions.

#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "transport/messages/stacks.h"

namespace monarch {

struct StacksShown {
  std::string job;
  std::vector<std::string> meshes;  // names, by MeshId
  std::vector<RankStacks> ranks;
  bool all_threads = false;
};

// "8 ranks of demo-1a2b: 7 + 1", then each group with its ranks and stacks, then who is not shown and why.
std::string stacks_text(const StacksShown& shown, bool colour);
std::string stacks_json(const StacksShown& shown);
std::string stacks_raw(const StacksShown& shown);

// Python programs that were shown by native frames alone, since py-spy is not there: their hosts; empty: none.
std::vector<std::string> hosts_without_py_spy(const StacksShown& shown);

}  // namespace monarch
