#include "supervisor/core/placement.h"

#include <algorithm>

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

std::vector<PoolHost> pool_of(const JobSpec& spec) {
  const auto* ssh = std::get_if<LaunchSsh>(&spec.launch);
  if (ssh == nullptr) return virtual_hosts(spec.pool_size());
  std::vector<PoolHost> hosts;
  hosts.reserve(ssh->hosts.size());
  // What SSH dials need not be what ranks reach each other by: a jump host or a network for management may lie between.
  for (const SshHost& host : ssh->hosts) hosts.push_back({.name = host.name, .address = ""});
  return hosts;
}

Placement::Placement(const JobSpec& spec) {
  for (const MeshSpec& mesh : spec.meshes) {
    places_.push_back({.first_host = hosts_used_,
                       .size = mesh.size(),
                       .per_host = mesh.per_host(),
                       .gang_size = mesh.size() / mesh.gangs()});
    if (!mesh.like) hosts_used_ += mesh.hosts();
  }
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const MeshSpec* mesh = &spec.meshes[i];
    // The validator has refused rings; whoever is like another that is like a third stands where the third does.
    for (std::size_t steps = 0; mesh->like; ++steps) {
      MONARCH_ASSERT(steps < spec.meshes.size() && mesh->like->value() < spec.meshes.size());
      places_[i].first_host = places_[mesh->like->value()].first_host;
      mesh = &spec.meshes[mesh->like->value()];
    }
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

std::uint32_t Placement::host_index(RankId rank) const { return rank.rank.value() / place(rank.mesh).per_host; }

std::uint32_t Placement::index_on_host(RankId rank) const { return rank.rank.value() % place(rank.mesh).per_host; }

std::vector<HostId> Placement::hosts_of(MeshId mesh) const {
  const MeshPlace& where = place(mesh);
  std::vector<HostId> hosts;
  for (std::uint32_t i = 0; i < where.size / where.per_host; ++i) hosts.emplace_back(where.first_host + i);
  return hosts;
}

RankRange Placement::range_of(MeshId mesh, GangId gang) const {
  const MeshPlace& where = place(mesh);
  const std::uint32_t first = gang.value() * where.gang_size;
  MONARCH_ASSERT(first < where.size);
  return {first, where.gang_size};
}

RankRange Placement::range_of(MeshId mesh, GangId gang, HostId host) const {
  const MeshPlace& where = place(mesh);
  if (host.value() < where.first_host || host.value() - where.first_host >= where.size / where.per_host) return {};
  const RankRange all = range_of(mesh, gang);
  const std::uint32_t on_host = (host.value() - where.first_host) * where.per_host;
  const std::uint32_t first = std::max(all.first, on_host);
  const std::uint32_t end = std::min(all.first + all.count, on_host + where.per_host);
  return {first, end > first ? end - first : 0};
}

namespace {

std::vector<RankId> list_of(MeshId mesh, RankRange range) {
  std::vector<RankId> ranks;
  ranks.reserve(range.count);
  for (std::uint32_t i = 0; i < range.count; ++i) ranks.push_back({mesh, Rank(range.first + i)});
  return ranks;
}

}  // namespace

std::vector<RankId> Placement::ranks_of(MeshId mesh, GangId gang) const { return list_of(mesh, range_of(mesh, gang)); }

std::vector<RankId> Placement::ranks_of(MeshId mesh, GangId gang, HostId host) const {
  return list_of(mesh, range_of(mesh, gang, host));
}

std::vector<HostId> Placement::hosts_of(MeshId mesh, GangId gang) const {
  const RankRange range = range_of(mesh, gang);
  const HostId first = host_of({mesh, Rank(range.first)});
  const HostId last = host_of({mesh, Rank(range.first + range.count - 1)});
  std::vector<HostId> hosts;
  for (std::uint32_t host = first.value(); host <= last.value(); ++host) hosts.emplace_back(host);
  return hosts;
}

}  // namespace monarch
