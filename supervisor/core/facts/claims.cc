#include "supervisor/core/facts/claims.h"

#include <algorithm>

namespace monarch {

const SlotClaim* find_claim(const CoreFacts& job, ClaimId id) {
  const std::vector<SlotClaim>& all = job.state.claims.claims;
  const auto found =
      std::lower_bound(all.begin(), all.end(), id, [](const SlotClaim& one, ClaimId other) { return one.id < other; });
  return found != all.end() && found->id == id ? &*found : nullptr;
}

const SlotClaim* claim_of(const CoreFacts& job, MeshId mesh, GangId slot) {
  const std::vector<ClaimId>& slots = job.state.claims.slots[mesh.value()];
  if (slots.empty() || slots[slot.value()] == ClaimId()) return nullptr;
  return find_claim(job, slots[slot.value()]);
}

bool rests(const CoreFacts& job, MeshId mesh, GangId slot) {
  return job.mesh(mesh).idle && claim_of(job, mesh, slot) == nullptr && !job.starts_nothing();
}

const SlotClaim* claim_asked_for(const CoreFacts& job, const ClaimHolder& holder, std::uint64_t number) {
  for (const SlotClaim& one : job.state.claims.claims) {
    if (one.holder == holder && one.number == number) return &one;
  }
  return nullptr;
}

std::map<std::string, std::string> env_of(const SlotClaim& claim, Rank rank) {
  std::map<std::string, std::string> env = claim.what.env;
  const auto at = std::find(claim.ranks.begin(), claim.ranks.end(), rank);
  const auto index = static_cast<std::size_t>(at - claim.ranks.begin());
  if (index >= claim.what.rank_env.size()) return env;
  for (const auto& [name, value] : claim.what.rank_env[index]) env[name] = value;
  return env;
}

}  // namespace monarch
