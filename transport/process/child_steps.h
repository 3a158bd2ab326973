#pragma once

// What a child does between fork and its program, and how it tells its parent of it. The word goes through a socket
// that the execution closes: a byte once it stands at its gate, then nothing, or the step that failed. The parent's one
// word, by the same socket, opens the gate.
//
// Thread: a copy of a process with one thread, so that allocating is allowed past the gate. Before it only
// async-signal-safe calls are made. Lifetime: what is prepared lives in the parent until it has forked.

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/unique_fd.h"
#include "transport/process/spawn.h"

namespace monarch {

// Made before the fork.
struct PreparedChild {
  const SpawnOptions* options = nullptr;
  pid_t parent = 0;
  std::vector<ChildDescriptor> descriptors;  // of prepared copies
  std::vector<std::pair<unsigned, unsigned>> closed;
  UniqueFd line;
  std::vector<UniqueFd> copies;
};

// `inside`: it is in its group already.
[[noreturn]] void run_child(const PreparedChild& prepared, bool inside);

inline constexpr char kGateByte = 'g';
inline constexpr char kAtGateByte = 'a';

// What the child writes before it gives up.
std::string encode_failure(const StepFailure& failure);
// Nothing where it is none: the child died in the middle of its word.
std::optional<StepFailure> decode_failure(std::string_view bytes);

}  // namespace monarch
