#pragma once

// Placement: which host of the pool each rank runs on. The meshes take slots in order of writing, exclusively, or the
// first slots of the mesh that they are like; ranks fill a slot with the innermost dimensions that share a host. Slot k
// is on the pool's host k until that host is replaced: then the slot is on another one, and nothing is renumbered. A
// host has one slot or none.
//
// Thread: a value.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "transport/base/ids.h"

namespace monarch {

struct PoolHost {
  std::string name;
  std::string address;  // numeric; MASTER_ADDR of gangs whose first host this is; empty: its worker tells when it is up
};

// All hosts of the job, in the order in which meshes take them. Nodes of Slurm that are not known yet are slurm1,
// slurm2, …, and those that are asked for while the job runs new1, new2, ….
std::vector<PoolHost> pool_of(const JobSpec& spec);

// The pool of the local launcher: v1…vN at 127.0.1.1….
std::vector<PoolHost> virtual_hosts(std::uint32_t count);

// Neighbouring ranks of a mesh.
struct RankRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

// Neighbouring gangs of a mesh.
struct GangRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

class Placement {
 public:
  // Takes hosts_needed() of the pool; the validator has checked that they are there.
  explicit Placement(const JobSpec& spec);
  // The host of each slot, from now on.
  void put(std::vector<HostId> slots);
  const std::vector<HostId>& slots() const { return slots_; }
  std::optional<std::uint32_t> slot_on(HostId host) const;

  HostId host_of(RankId rank) const;
  std::uint32_t first_slot(MeshId mesh) const { return place(mesh).first_slot; }
  // Of the rank's host among those of its mesh.
  std::uint32_t host_index(RankId rank) const;
  // Of a host among those of a gang, in the order of the gang's ranks; nothing if it has none of them.
  std::optional<std::uint32_t> index_in_gang(MeshId mesh, GangId gang, HostId host) const;
  std::vector<HostId> hosts_of(MeshId mesh) const;
  // Ranks of a gang in order, and those of them on one host.
  std::vector<RankId> ranks_of(MeshId mesh, GangId gang) const;
  std::vector<RankId> ranks_of(MeshId mesh, GangId gang, HostId host) const;
  std::vector<HostId> hosts_of(MeshId mesh, GangId gang) const;
  // The same as numbers, without making lists.
  RankRange range_of(MeshId mesh, GangId gang) const;
  RankRange range_of(MeshId mesh, GangId gang, HostId host) const;
  bool holds_ranks(HostId host) const { return slot_on(host).has_value(); }
  // Of all its gangs.
  RankRange ranks_on(MeshId mesh, HostId host) const;
  // Neighbouring gangs of a mesh with ranks on this host; none: count is 0.
  GangRange gangs_on(MeshId mesh, HostId host) const;

 private:
  struct MeshPlace {
    std::uint32_t first_slot = 0;
    std::uint32_t size = 0;
    std::uint32_t per_host = 0;
    std::uint32_t gang_size = 0;
  };
  const MeshPlace& place(MeshId mesh) const;

  std::vector<MeshPlace> places_;
  std::vector<HostId> slots_;
  std::vector<std::optional<std::uint32_t>> slot_on_;  // by host, as far as the last one that has a slot
};

}  // namespace monarch
