#pragma once

// What a rank's process does between its gate and its program: the mesh's setup, the environment on top of that, the
// cores.
//
// Thread: a value of the keeper's; prepare_rank() is for the rank's process.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/process/spawn.h"
#include "worker/core/environment.h"
#include "worker/keeper/mesh_setup.h"

namespace monarch {

struct RankPreparation {
  const MeshSetup* mesh_setup = nullptr;  // none: there is no setup, and the environment is complete
  std::string setup;
  Environment gang_env;
  Environment own_env;
  RankEnvironment keys;
  std::vector<std::uint32_t> cpus;  // none: it is not bound
};

std::optional<StepFailure> prepare_rank(const RankPreparation& preparation, std::vector<std::string>& environment);

}  // namespace monarch
