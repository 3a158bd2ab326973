#pragma once

// Claims: idle slots that somebody has asked for and has until he lets them go. What he asked for goes into the START
// of each generation of theirs until then (facts/gang_orders.cc).
//
// Thread: JobCore's; no locks. Lifetime: JobCore's.

#include "supervisor/core/gangs/gangs.h"
#include "supervisor/core/state/claim_state.h"

namespace monarch {

class Claims {
 public:
  Claims(const CoreBasis& basis, ClaimState& mine, Gangs& gangs);

  void on(const SlotsClaimed& event);
  void on(const SlotsLetGo& event);

 private:
  ClaimId& slot(MeshId mesh, Rank rank) { return mine_.slots[mesh.value()][rank.value()]; }
  void tell(EventKind kind, const SlotClaim& claim, const std::string& what) const;

  const CoreBasis& basis_;
  ClaimState& mine_;
  Gangs& gangs_;
};

}  // namespace monarch
