#pragma once

// Who lives on a host: ranks that are wanted alive there, of whichever gang. A host that holds any is not taken away
// from them.
//
// Thread: pure functions.

#include <algorithm>

#include "supervisor/core/spec/placement.h"
#include "supervisor/core/state/job_state.h"

namespace monarch {

inline bool somebody_lives_on(const JobState& state, const Placement& placement, HostId host) {
  for (std::uint32_t m = 0; m < state.meshes.size(); ++m) {
    const RankRange here = placement.ranks_on(MeshId(m), host);
    const auto first = state.meshes[m].ranks.begin() + here.first;
    const auto last = first + here.count;
    if (std::any_of(first, last, [](const RankState& rank) { return lives(rank.stage); })) return true;
  }
  return false;
}

}  // namespace monarch
