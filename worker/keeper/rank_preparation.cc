#include "worker/keeper/rank_preparation.h"

#include <cerrno>

#include "transport/base/text.h"
#include "transport/process/cpu_affinity.h"
#include "worker/core/cpu_binding.h"

namespace monarch {

std::optional<StepFailure> prepare_rank(const RankPreparation& preparation, std::vector<std::string>& environment) {
  if (preparation.mesh_setup != nullptr) {
    const RankEnvironment& keys = preparation.keys;
    if (auto failure = preparation.mesh_setup->apply(preparation.setup, keys.process, environment)) {
      return failure;
    }
    environment = environment_lines(
        rank_environment(environment_from(environment), preparation.gang_env, preparation.own_env, keys));
  }
  if (!preparation.cpus.empty() && !bind_to_cpus(preparation.cpus)) {
    return StepFailure{errno, text("bind to cores ", cpu_list(preparation.cpus), " of the host")};
  }
  return std::nullopt;
}

}  // namespace monarch
