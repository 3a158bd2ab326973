#include "supervisor/core/job/vault_table.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace monarch {

namespace {

// It may go on from a checkpoint, or is about to save one. A sidecar has nothing that another host could go on from.
bool is_told_of(const MeshSpec& mesh, const GangState& gang) {
  const auto& shrink = mesh.supervision.shrink;
  const bool for_good = is_parked(gang.phase) && !(shrink && shrink->regrow);
  return !mesh.sidecar && !has_ended(gang.phase) && !for_good;
}

VaultGang told_of(MeshId mesh, GangId id, const GangState& gang, Generation generation) {
  VaultGang told{.mesh = mesh, .gang = id, .generation = generation.counter};
  if (gang.commits.newest) told.committed = gang.commits.newest->step;
  if (gang.commits.resumed) told.resumed = gang.commits.resumed->step;
  told.passed = passed_step(gang.commits, generation);
  return told;
}

// Nothing speaks against giving it something to keep.
bool is_well(const HostState& host) { return host.standing == HostStanding::kGood && !host.doubted; }

}  // namespace

PortSpan vault_ports(const JobSpec& spec) {
  if (!spec.network.ports) return {};
  std::set<std::uint32_t> fixed;
  for (const MeshSpec& mesh : spec.meshes) {
    for (const PortSpec& port : mesh.ports) {
      if (port.fixed) fixed.insert(*port.fixed);
    }
  }
  const PortSpan& all = *spec.network.ports;
  std::uint32_t last = all.last;
  while (last > all.first && fixed.contains(last)) --last;
  std::uint32_t first = last;
  while (first > all.first && !fixed.contains(first - 1)) --first;
  return {.first = static_cast<std::uint16_t>(first), .last = static_cast<std::uint16_t>(last)};
}

bool serves_vault(const VaultView& view, HostId id) {
  const HostState& host = view.state.hosts[id.value()];
  const bool connected = is_joined(host.phase) && !host.failing && !host.shutdown_told;
  return connected && view.ports[id.value()] != 0 && !host.public_key.empty() && !view.pool[id.value()].address.empty();
}

VaultTable common_vault_table(const VaultView& view) {
  VaultTable table;
  for (std::uint32_t m = 0; m < view.spec.meshes.size(); ++m) {
    const MeshSpec& mesh = view.spec.meshes[m];
    table.meshes.push_back({.name = mesh.name, .gang_size = mesh.gang_size()});
    const std::vector<GangState>& gangs = view.state.meshes[m].gangs;
    for (std::uint32_t g = 0; g < gangs.size(); ++g) {
      if (is_told_of(mesh, gangs[g])) {
        table.gangs.push_back(
            told_of(MeshId(m), GangId(g), gangs[g], crew_in(view.state, MeshId(m), GangId(g)).generation));
      }
    }
  }
  for (std::uint32_t i = 0; i < view.state.hosts.size(); ++i) {
    if (!serves_vault(view, HostId(i))) continue;
    const PoolHost& host = view.pool[i];
    table.peers.push_back({.host = HostId(i),
                           .name = host.name,
                           .address = host.address,
                           .port = view.ports[i],
                           .public_key = view.state.hosts[i].public_key});
  }
  return table;
}

std::vector<std::vector<VaultGang>> own_vault_gangs(const VaultView& view) {
  std::vector<std::vector<VaultGang>> own(view.state.hosts.size());
  for (std::uint32_t m = 0; m < view.spec.meshes.size(); ++m) {
    const MeshId mesh(m);
    for (std::uint32_t g = 0; g < view.state.meshes[m].gangs.size(); ++g) {
      const GangId gang(g);
      if (!is_told_of(view.spec.meshes[m], view.state.meshes[m].gangs[g])) continue;
      const auto of = [&](HostId host) -> VaultGang& {
        std::vector<VaultGang>& gangs = own[host.value()];
        const bool is_there = !gangs.empty() && gangs.back().mesh == mesh && gangs.back().gang == gang;
        if (!is_there) gangs.push_back({.mesh = mesh, .gang = gang});
        return gangs.back();
      };
      for (const HostId host : view.placement.hosts_of(mesh, gang)) {
        std::vector<HostId> targets = vault_targets(view, mesh, gang, host);
        const RankRange ranks = view.placement.range_of(mesh, gang, host);
        for (const HostId target : targets) of(target).sources.push_back({host, Rank(ranks.first), ranks.count});
        of(host).targets = std::move(targets);
      }
    }
  }
  return own;
}

std::vector<std::uint32_t> vault_places(const VaultView& view) {
  std::vector<std::uint32_t> places;
  for (const HostId slot : view.placement.slots()) places.push_back(slot.value());
  for (std::uint32_t i = 0; i < view.state.hosts.size(); ++i) {
    const bool serves = serves_vault(view, HostId(i));
    places.push_back((serves ? 2U : 0U) + (is_well(view.state.hosts[i]) ? 1U : 0U));
  }
  for (std::uint32_t m = 0; m < view.spec.meshes.size(); ++m) {
    for (const GangState& gang : view.state.meshes[m].gangs) {
      places.push_back(is_told_of(view.spec.meshes[m], gang) ? 1U : 0U);
    }
  }
  return places;
}

// The others in a ring, from the gang's first host on. Each of its hosts begins one further than the one before, or all
// of them would fill the first.
std::vector<HostId> vault_targets(const VaultView& view, MeshId mesh, GangId gang, HostId host) {
  const std::optional<std::uint32_t> index = view.placement.index_in_gang(mesh, gang, host);
  if (!index) return {};
  const std::size_t hosts = view.state.hosts.size();
  const HostId first = view.placement.hosts_of(mesh, gang).front();
  std::vector<HostId> others;
  for (std::size_t i = 1; i < hosts; ++i) {
    const HostId other(static_cast<std::uint32_t>((first.value() + i) % hosts));
    if (!view.placement.index_in_gang(mesh, gang, other) && serves_vault(view, other)) others.push_back(other);
  }
  if (others.empty()) return {};
  std::rotate(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(*index % others.size()), others.end());
  std::stable_partition(others.begin(), others.end(),
                        [&view](HostId other) { return is_well(view.state.hosts[other.value()]); });
  others.resize(std::min<std::size_t>(others.size(), view.spec.checkpoints.peer));
  return others;
}

VaultTable vault_table_of(VaultTable common, const std::vector<VaultGang>& own, HostId host) {
  const auto place = [](const VaultGang& gang) { return std::pair(gang.mesh, gang.gang); };
  auto gang = common.gangs.begin();
  for (const VaultGang& told : own) {
    while (gang != common.gangs.end() && place(*gang) < place(told)) ++gang;
    if (gang == common.gangs.end() || place(*gang) != place(told)) continue;
    gang->targets = told.targets;
    gang->sources = told.sources;
  }
  std::erase_if(common.peers, [host](const PeerAddress& peer) { return peer.host == host; });
  return common;
}

}  // namespace monarch
