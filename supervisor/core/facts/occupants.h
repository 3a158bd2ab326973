#pragma once

// Who lives on a host: ranks that are wanted alive there, of whichever gang. A host that holds any is not taken away
// from them.
//
// Thread: pure functions.

#include "supervisor/core/spec/placement.h"
#include "supervisor/core/state/job_state.h"

namespace monarch {

inline bool somebody_lives_on(const JobState& state, const Placement& placement, HostId host) {
  for (std::uint32_t m = 0; m < state.meshes.size(); ++m) {
    const RankRange here = placement.ranks_on(MeshId(m), host);
    const std::vector<Crew>& gangs = state.crews[m];
    for (std::uint32_t r = here.first; r < here.first + here.count; ++r) {
      const std::size_t size = gangs.front().members.size();
      if (lives(gangs[r / size].members[r % size].stage)) return true;
    }
  }
  return false;
}

}  // namespace monarch
