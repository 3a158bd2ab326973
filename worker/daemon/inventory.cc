#include "worker/daemon/inventory.h"

#include <cstdlib>
#include <optional>

#include "transport/process/cpu_affinity.h"
#include "transport/process/nvidia_gpus.h"

namespace monarch::daemon {

HostInventory read_inventory(const std::string& root) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return {.cpus = static_cast<std::uint32_t>(usable_cpus().size()),
          .gpus = visible_gpus(read_nvidia_gpus(root),
                               visible == nullptr ? std::nullopt : std::optional<std::string>(visible))};
}

}  // namespace monarch::daemon
