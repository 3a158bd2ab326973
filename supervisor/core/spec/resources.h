#pragma once

// Resources: which GPUs and which cores of its host each rank gets, by the spec and its slot alone, as positions in
// what the slot's host turns out to have. Meshes that share a host get disjoint ones; so do virtual hosts, which share
// their machine: they divide its GPUs and cores in order.
//
// Thread: a value.

#include <cstdint>
#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/core/spec/placement.h"
#include "transport/base/ids.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/rank.h"

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
  // Empty: the host with this inventory has what the mesh needs in the slot of this rank; else "needs 4 GPUs … and has
  // 2".
  std::string lacking(RankId any_of_slot, const HostInventory& inventory) const;
  // The GPUs of neighbouring ranks that share a host, as the host counts them, in the order of the ranks.
  Share gpus_of(MeshId mesh, RankRange here) const;
  RankBinding binding_of(RankId rank, const HostInventory& inventory) const;

 private:
  struct OfMesh {
    std::uint32_t gpus = 0;  // per rank
    std::uint32_t cpus = 0;
    BindKind bind = BindKind::kNone;
    std::uint32_t first_slot = 0;
    std::uint32_t per_host = 1;
    std::vector<Share> gpus_on;  // by index of the slot within the mesh
    std::vector<Share> cpus_on;
    std::vector<Share> ranks_on;  // of all ranks on the machine, for a binding without a number of cores
    std::uint32_t slot_of(RankId rank) const { return rank.rank.value() / per_host; }
    std::uint32_t place_of(RankId rank) const { return rank.rank.value() % per_host; }
  };
  std::vector<OfMesh> meshes_;
  std::vector<std::uint32_t> ranks_of_machine_;  // by slot: on its machine, which virtual hosts share
};

// That a host needs to serve any slot: the most that the meshes of one slot need together; of virtual hosts, all that
// they need.
std::uint32_t gpus_per_node(const JobSpec& spec);
// Likewise, of cores; 0: no mesh says how many.
std::uint32_t cpus_per_node(const JobSpec& spec);

}  // namespace monarch
