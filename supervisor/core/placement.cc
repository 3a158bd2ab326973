#include "supervisor/core/placement.h"

#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

std::vector<PoolHost> virtual_hosts(std::uint32_t count) {
  std::vector<PoolHost> hosts;
  hosts.reserve(count);
  for (std::uint32_t i = 1; i <= count; ++i) {
    hosts.push_back({.name = text("v", i), .address = text("127.0.", 1 + i / 256, ".", i % 256)});
  }
  return hosts;
}

Placement::Placement(const JobSpec& spec) {
  for (const MeshSpec& mesh : spec.meshes) {
    places_.push_back({.first_host = hosts_used_,
                       .size = mesh.size(),
                       .per_host = mesh.per_host(),
                       .gang_size = mesh.size() / mesh.gangs()});
    hosts_used_ += mesh.hosts();
  }
}

const Placement::MeshPlace& Placement::place(MeshId mesh) const {
  MONARCH_ASSERT(mesh.value() < places_.size());
  return places_[mesh.value()];
}

HostId Placement::host_of(RankId rank) const {
  const MeshPlace& mesh = place(rank.mesh);
  MONARCH_ASSERT(rank.rank.value() < mesh.size);
  return HostId(mesh.first_host + rank.rank.value() / mesh.per_host);
}

std::vector<HostId> Placement::hosts_of(MeshId mesh) const {
  const MeshPlace& where = place(mesh);
  std::vector<HostId> hosts;
  for (std::uint32_t i = 0; i < where.size / where.per_host; ++i) hosts.emplace_back(where.first_host + i);
  return hosts;
}

std::vector<RankId> Placement::ranks_of(MeshId mesh, GangId gang) const {
  const MeshPlace& where = place(mesh);
  std::vector<RankId> ranks;
  const std::uint32_t first = gang.value() * where.gang_size;
  MONARCH_ASSERT(first < where.size);
  for (std::uint32_t i = 0; i < where.gang_size; ++i) ranks.push_back({mesh, Rank(first + i)});
  return ranks;
}

std::vector<RankId> Placement::ranks_of(MeshId mesh, GangId gang, HostId host) const {
  std::vector<RankId> here;
  for (const RankId& rank : ranks_of(mesh, gang)) {
    if (host_of(rank) == host) here.push_back(rank);
  }
  return here;
}

std::vector<HostId> Placement::hosts_of(MeshId mesh, GangId gang) const {
  std::vector<HostId> hosts;
  for (const RankId& rank : ranks_of(mesh, gang)) {
    const HostId host = host_of(rank);
    if (hosts.empty() || hosts.back() != host) hosts.push_back(host);
  }
  return hosts;
}

}  // namespace monarch
