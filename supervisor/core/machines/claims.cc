#include "supervisor/core/machines/claims.h"

#include <algorithm>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

Claims::Claims(const CoreBasis& basis, ClaimState& mine, Gangs& gangs) : basis_(basis), mine_(mine), gangs_(gangs) {
  for (const MeshSpec& mesh : basis.spec.meshes) {
    mine_.slots.emplace_back(mesh.idle ? mesh.size() : 0U);
  }
}

void Claims::on(const SlotsClaimed& event) {
  if (basis_.state.phase < JobPhase::kStarting || basis_.starts_nothing()) return;
  const SlotClaim& claim = event.claim;
  MONARCH_ASSERT_BECAUSE(claim.id.value() == mine_.next, "claims are counted");
  ++mine_.next;
  mine_.claims.push_back(claim);
  for (const Rank rank : claim.ranks) {
    MONARCH_ASSERT_BECAUSE(slot(claim.mesh, rank) == ClaimId(), "a slot has one claim");
    slot(claim.mesh, rank) = claim.id;
    gangs_.slot_changed(claim.mesh, basis_.mesh(claim.mesh).gang_of(rank));
  }
  tell(EventKind::kSlotsClaimed, claim, text("claimed by a process on ", basis_.name_of(claim.holder.host)));
}

void Claims::on(const SlotsLetGo& event) {
  for (const ClaimId id : event.claims) {
    const auto found =
        std::find_if(mine_.claims.begin(), mine_.claims.end(), [&](const SlotClaim& one) { return one.id == id; });
    if (found == mine_.claims.end()) continue;
    const SlotClaim claim = std::move(*found);
    mine_.claims.erase(found);
    for (const Rank rank : claim.ranks) slot(claim.mesh, rank) = ClaimId();
    if (basis_.state.phase != JobPhase::kEnded) {
      tell(EventKind::kSlotsLetGo, claim, text("let go: ", printable(event.why)));
    }
    for (const Rank rank : claim.ranks) gangs_.slot_changed(claim.mesh, basis_.mesh(claim.mesh).gang_of(rank));
  }
}

// "procs/0-3 as workers: claimed by a process on v1"
void Claims::tell(EventKind kind, const SlotClaim& claim, const std::string& what) const {
  const std::string name = claim.what.name.empty() ? std::string() : text(" as ", printable(claim.what.name));
  std::vector<RankId> ranks;
  for (const Rank rank : claim.ranks) ranks.push_back({claim.mesh, rank});
  JobEvent event = basis_.event(kind, Severity::kInfo, text(basis_.names_of(std::move(ranks)), name, ": ", what));
  event.mesh = basis_.mesh(claim.mesh).name;
  event.host = basis_.name_of(claim.holder.host);
  event.details = {{"claim", text(claim.id.value())}, {"ranks", text(claim.ranks.size())}};
  basis_.emit(std::move(event));
}

}  // namespace monarch
