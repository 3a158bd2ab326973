#include "supervisor/core/spec/placement.h"

#include <algorithm>
#include <utility>

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

// What a launcher reaches a host by need not be what ranks reach each other by: a network for management may lie
// between.
std::vector<PoolHost> pool_of(const JobSpec& spec) {
  const LaunchFacts& launch = spec.launch.facts();
  const std::uint32_t count = spec.pool_size();
  if (launch.one_machine) return virtual_hosts(count);
  std::vector<PoolHost> hosts;
  hosts.reserve(count);
  const std::size_t known = launch.hosts.size();
  for (std::uint32_t i = 0; i < count; ++i) {
    hosts.push_back({.name = i < known ? launch.hosts[i] : text(launch.unnamed, i - known + 1), .address = ""});
  }
  return hosts;
}

Placement::Placement(const JobSpec& spec) {
  std::uint32_t used = 0;
  for (const MeshSpec& mesh : spec.meshes) {
    places_.push_back({.first_slot = used,
                       .size = mesh.size(),
                       .per_host = mesh.per_host(),
                       .gang_size = mesh.size() / mesh.gangs()});
    if (!mesh.like) used += mesh.hosts();
  }
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const MeshSpec* mesh = &spec.meshes[i];
    // The validator has refused rings; whoever is like another that is like a third stands where the third does.
    for (std::size_t steps = 0; mesh->like; ++steps) {
      MONARCH_ASSERT(steps < spec.meshes.size() && mesh->like->value() < spec.meshes.size());
      places_[i].first_slot = places_[mesh->like->value()].first_slot;
      mesh = &spec.meshes[mesh->like->value()];
    }
  }
  std::vector<HostId> slots;
  slots.reserve(used);
  for (std::uint32_t slot = 0; slot < used; ++slot) slots.emplace_back(slot);
  put(std::move(slots));
}

void Placement::put(std::vector<HostId> slots) {
  slots_ = std::move(slots);
  slot_on_.clear();
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    const std::uint32_t host = slots_[slot].value();
    if (slot_on_.size() <= host) slot_on_.resize(host + 1);
    MONARCH_ASSERT_BECAUSE(!slot_on_[host], "a host has one slot or none");
    slot_on_[host] = slot;
  }
}

std::optional<std::uint32_t> Placement::slot_on(HostId host) const {
  return host.value() < slot_on_.size() ? slot_on_[host.value()] : std::nullopt;
}

const Placement::MeshPlace& Placement::place(MeshId mesh) const {
  MONARCH_ASSERT(mesh.value() < places_.size());
  return places_[mesh.value()];
}

HostId Placement::host_of(RankId rank) const {
  const MeshPlace& mesh = place(rank.mesh);
  MONARCH_ASSERT(rank.rank.value() < mesh.size);
  return slots_[mesh.first_slot + rank.rank.value() / mesh.per_host];
}

std::uint32_t Placement::host_index(RankId rank) const { return rank.rank.value() / place(rank.mesh).per_host; }

std::optional<std::uint32_t> Placement::index_in_gang(MeshId mesh, GangId gang, HostId host) const {
  const RankRange here = range_of(mesh, gang, host);
  if (here.count == 0) return std::nullopt;
  return host_index({mesh, Rank(here.first)}) - host_index({mesh, Rank(range_of(mesh, gang).first)});
}

std::vector<HostId> Placement::hosts_of(MeshId mesh) const {
  const MeshPlace& where = place(mesh);
  std::vector<HostId> hosts;
  for (std::uint32_t i = 0; i < where.size / where.per_host; ++i) hosts.push_back(slots_[where.first_slot + i]);
  return hosts;
}

RankRange Placement::range_of(MeshId mesh, GangId gang) const {
  const MeshPlace& where = place(mesh);
  const std::uint32_t first = gang.value() * where.gang_size;
  MONARCH_ASSERT(first < where.size);
  return {first, where.gang_size};
}

RankRange Placement::ranks_on(MeshId mesh, HostId host) const {
  const MeshPlace& where = place(mesh);
  const std::optional<std::uint32_t> slot = slot_on(host);
  if (!slot || *slot < where.first_slot || *slot - where.first_slot >= where.size / where.per_host) return {};
  return {(*slot - where.first_slot) * where.per_host, where.per_host};
}

RankRange Placement::range_of(MeshId mesh, GangId gang, HostId host) const {
  const RankRange here = ranks_on(mesh, host);
  if (here.count == 0) return {};
  const RankRange all = range_of(mesh, gang);
  const std::uint32_t first = std::max(all.first, here.first);
  const std::uint32_t end = std::min(all.first + all.count, here.first + here.count);
  return {first, end > first ? end - first : 0};
}

GangRange Placement::gangs_on(MeshId mesh, HostId host) const {
  const RankRange here = ranks_on(mesh, host);
  if (here.count == 0) return {};
  const std::uint32_t size = place(mesh).gang_size;
  const std::uint32_t first = here.first / size;
  return {first, (here.first + here.count - 1) / size - first + 1};
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
  const std::uint32_t base = place(mesh).first_slot;
  const std::uint32_t last = base + host_index({mesh, Rank(range.first + range.count - 1)});
  std::vector<HostId> hosts;
  for (std::uint32_t slot = base + host_index({mesh, Rank(range.first)}); slot <= last; ++slot) {
    hosts.push_back(slots_[slot]);
  }
  return hosts;
}

}  // namespace monarch
