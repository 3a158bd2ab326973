#include "supervisor/core/spec/resources.h"

#include <algorithm>

#include "transport/base/text.h"

namespace monarch {

namespace {

std::string lack(const std::string& what, Share here, std::uint64_t have) {
  const std::uint64_t need = std::uint64_t{here.first} + here.count;
  if (here.count == 0 || need <= have) return {};
  const std::string others =
      here.first == 0 ? std::string()
                      : text(" besides the ", here.first, " that other meshes and virtual hosts of its machine have");
  return text("needs ", here.count, " ", what, others, ", and there are ", have);
}

}  // namespace

// In the order of slots, and in a slot in the order of meshes: what one machine has is given out once. Virtual hosts
// are one machine.
Resources::Resources(const JobSpec& spec, const Placement& placement) {
  std::uint32_t slots = 0;
  for (std::uint32_t m = 0; m < spec.meshes.size(); ++m) {
    const MeshSpec& mesh = spec.meshes[m];
    meshes_.push_back({.gpus = mesh.resources.gpus.value_or(0),
                       .cpus = mesh.resources.cpus.value_or(0),
                       .bind = mesh.resources.bind,
                       .first_slot = placement.first_slot(MeshId(m)),
                       .per_host = mesh.per_host(),
                       .gpus_on = std::vector<Share>(mesh.hosts()),
                       .cpus_on = std::vector<Share>(mesh.hosts()),
                       .ranks_on = std::vector<Share>(mesh.hosts())});
    slots = std::max(slots, placement.first_slot(MeshId(m)) + mesh.hosts());
  }
  const bool one_machine = spec.launch.facts().one_machine;
  Share gpus;
  Share cpus;
  std::uint32_t ranks_so_far = 0;
  for (std::uint32_t h = 0; h < slots; ++h) {
    if (!one_machine) {
      gpus = cpus = {};
      ranks_so_far = 0;
    }
    for (std::uint32_t m = 0; m < meshes_.size(); ++m) {
      const std::uint32_t first = placement.first_slot(MeshId(m));
      OfMesh& mesh = meshes_[m];
      if (h < first || h - first >= mesh.gpus_on.size()) continue;
      const std::uint32_t ranks = spec.meshes[m].per_host();
      mesh.gpus_on[h - first] = {gpus.first, ranks * mesh.gpus};
      mesh.cpus_on[h - first] = {cpus.first, ranks * mesh.cpus};
      mesh.ranks_on[h - first] = {ranks_so_far, ranks};
      gpus.first += ranks * mesh.gpus;
      cpus.first += ranks * mesh.cpus;
      ranks_so_far += ranks;
    }
    ranks_of_machine_.push_back(ranks_so_far);
  }
  if (one_machine) std::fill(ranks_of_machine_.begin(), ranks_of_machine_.end(), ranks_so_far);
}

Share Resources::gpus_of(RankId rank) const {
  const OfMesh& mesh = meshes_[rank.mesh.value()];
  return {mesh.gpus_on[mesh.slot_of(rank)].first + mesh.place_of(rank) * mesh.gpus, mesh.gpus};
}

Share Resources::cpus_of(RankId rank) const {
  const OfMesh& mesh = meshes_[rank.mesh.value()];
  return {mesh.cpus_on[mesh.slot_of(rank)].first + mesh.place_of(rank) * mesh.cpus, mesh.cpus};
}

std::string Resources::lacking(RankId any_of_slot, const HostInventory& inventory) const {
  const OfMesh& mesh = meshes_[any_of_slot.mesh.value()];
  const Share& gpus = mesh.gpus_on[mesh.slot_of(any_of_slot)];
  const Share& cpus = mesh.cpus_on[mesh.slot_of(any_of_slot)];
  const std::string lacks_gpus = lack(gpus.count == 1 ? "GPU" : "GPUs", gpus, inventory.gpus.size());
  return lacks_gpus.empty() ? lack(cpus.count == 1 ? "core" : "cores", cpus, inventory.cpus) : lacks_gpus;
}

Share Resources::gpus_of(MeshId mesh, RankRange here) const {
  if (here.count == 0) return {};
  return {gpus_of({mesh, Rank(here.first)}).first, here.count * meshes_[mesh.value()].gpus};
}

RankBinding Resources::binding_of(RankId rank, const HostInventory& inventory) const {
  const OfMesh& mesh = meshes_[rank.mesh.value()];
  RankBinding binding{.kind = mesh.bind};
  if (mesh.bind == BindKind::kNone) return binding;
  const Share cpus = cpus_of(rank);
  binding.first_cpu = cpus.first;
  binding.cpus = cpus.count;
  const std::uint32_t ranks = ranks_of_machine_[mesh.first_slot + mesh.slot_of(rank)];
  if (cpus.count == 0 && ranks > 0) {
    // A node is wanted and no number of cores: ranks are spread over the machine.
    const std::uint64_t place = mesh.ranks_on[mesh.slot_of(rank)].first + mesh.place_of(rank);
    binding.first_cpu = static_cast<std::uint32_t>(place * inventory.cpus / ranks);
  }
  const Share gpus = gpus_of(rank);
  for (std::uint32_t i = gpus.first; i < gpus.first + gpus.count && i < inventory.gpus.size(); ++i) {
    binding.gpus.push_back(inventory.gpus[i].uuid);
  }
  return binding;
}

namespace {

using ShareOfRanks = Share (Resources::*)(RankId) const;

std::uint32_t most_per_node(const JobSpec& spec, ShareOfRanks share_of) {
  const Resources resources(spec, Placement(spec));
  std::uint32_t most = 0;
  for (std::uint32_t m = 0; m < spec.meshes.size(); ++m) {
    for (std::uint32_t r = 0; r < spec.meshes[m].size(); ++r) {
      const Share here = (resources.*share_of)({MeshId(m), Rank(r)});
      most = std::max(most, here.count == 0 ? 0 : here.first + here.count);
    }
  }
  return most;
}

}  // namespace

std::uint32_t gpus_per_node(const JobSpec& spec) {
  return most_per_node(spec, static_cast<ShareOfRanks>(&Resources::gpus_of));
}

std::uint32_t cpus_per_node(const JobSpec& spec) { return most_per_node(spec, &Resources::cpus_of); }

}  // namespace monarch
