#pragma once

// Resources: which GPUs and which cores of its host each rank gets, by the spec and the placement alone, as positions in what the host
// turns out to have. Meshes that share a host get disjoint ones; so do virtual hosts, which share their machine: they divide its
// GPUs and cores in order.
//
// Thread: a value.

#include <cstdint>
#include <string>
#include <vector>

#include "supervisor/core/job_spec.h"
#include "supervisor/core/placement.h"
#include "transport/base/control_messages.h"
#include "transport/base/ids.h"

namespace monarch {

struct Share {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

class Resources {
 public:
  Resources(const JobSpec& spec, const Placement& placement);

  Share gpus_of(RankId rank) const;
  Share cpus_of(RankId rank) const;
  // Empty: the host has what its ranks of this mesh need; else "needs 4 GPUs … and has 2".
  std::string lacking(HostId host, MeshId mesh, const HostInventory& inventory) const;
  // The GPUs of a gang on one host, as the host counts them, in the order of its ranks.
  Share gpus_of(MeshId mesh, GangId gang, HostId host) const;
  RankBinding binding_of(RankId rank, const HostInventory& inventory) const;

 private:
  struct OfMesh {
    std::uint32_t gpus = 0;  // per rank
    std::uint32_t cpus = 0;
    BindKind bind = BindKind::kNone;
    std::vector<Share> gpus_on;  // by index of the host within the mesh
    std::vector<Share> cpus_on;
    std::vector<Share> ranks_on;  // of all ranks on the machine, for a binding without a number of cores
  };
  Placement placement_;
  std::vector<OfMesh> meshes_;
  std::vector<std::uint32_t> ranks_of_machine_;  // by host: on its machine, which virtual hosts share
};

}  // namespace monarch
