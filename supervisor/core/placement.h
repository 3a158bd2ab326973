#pragma once

// Placement: which host of the pool each rank runs on. The meshes take the pool's first hosts in order of writing, exclusively, or
// the first hosts of the mesh that they are like; ranks fill a host with the innermost dimensions that share one. Nothing is
// renumbered when a host is replaced.
//
// Thread: a value.

#include <cstdint>
#include <string>
#include <vector>

#include "supervisor/core/job_spec.h"
#include "transport/base/ids.h"

namespace monarch {

struct PoolHost {
  std::string name;
  std::string address;  // numeric; MASTER_ADDR of gangs whose first host this is; empty: its worker tells when it is up
};

// All hosts of the job, in the order in which meshes take them.
std::vector<PoolHost> pool_of(const JobSpec& spec);

// The pool of the local launcher: v1…vN at 127.0.1.1….
std::vector<PoolHost> virtual_hosts(std::uint32_t count);

// Neighbouring ranks of a mesh.
struct RankRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

class Placement {
 public:
  // Takes hosts_needed() of the pool; the validator has checked that they are there.
  explicit Placement(const JobSpec& spec);

  HostId host_of(RankId rank) const;
  HostId first_host(MeshId mesh) const { return HostId(place(mesh).first_host); }
  // Of the rank's host among those of its mesh, and of the rank among those of its mesh on that host.
  std::uint32_t host_index(RankId rank) const;
  std::uint32_t index_on_host(RankId rank) const;
  std::vector<HostId> hosts_of(MeshId mesh) const;
  // Ranks of a gang in order, and those of them on one host.
  std::vector<RankId> ranks_of(MeshId mesh, GangId gang) const;
  std::vector<RankId> ranks_of(MeshId mesh, GangId gang, HostId host) const;
  std::vector<HostId> hosts_of(MeshId mesh, GangId gang) const;
  // The same as numbers, without making lists.
  RankRange range_of(MeshId mesh, GangId gang) const;
  RankRange range_of(MeshId mesh, GangId gang, HostId host) const;
  bool holds_ranks(HostId host) const { return host.value() < hosts_used_; }

 private:
  struct MeshPlace {
    std::uint32_t first_host = 0;
    std::uint32_t size = 0;
    std::uint32_t per_host = 0;
    std::uint32_t gang_size = 0;
  };
  const MeshPlace& place(MeshId mesh) const;

  std::vector<MeshPlace> places_;
  std::uint32_t hosts_used_ = 0;
};

}  // namespace monarch
