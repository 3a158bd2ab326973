#pragma once

// Held ports: what each host of a gang is asked to hold for it, and which of them is whose. On the gang's first host
// the first one is MASTER_PORT; then each rank there has one for every port of its mesh that is `auto`, in order of
// writing.
//
// Thread: pure functions.

#include <cstdint>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/core/spec/placement.h"
#include "supervisor/core/spec/resources.h"
#include "supervisor/core/state/job_state.h"
#include "transport/base/ids.h"
#include "transport/messages/rank.h"

namespace monarch {

struct HeldPortsInput {
  const MeshSpec& mesh;
  const Placement& placement;
  const Crew& crew;
};

// Without its GPUs.
Reserve ports_to_hold(const HeldPortsInput& input, MeshId mesh, GangId gang, HostId host);
// Does it ask for anything?
bool asks_for_something(const Reserve& reserve);

std::uint16_t master_port(const Crew& crew);
// Port number `index` of a rank's mesh; 0: its host has not answered.
std::uint16_t port_of(const HeldPortsInput& input, RankId rank, std::size_t index);
std::vector<std::uint16_t> ports_of(const HeldPortsInput& input, RankId rank);

}  // namespace monarch
