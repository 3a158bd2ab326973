#pragma once

// HostNames: what hosts are called, and where ranks reach each other, as far as they tell it themselves. A host on
// request has a name of ours until one is granted, and the machine's from then to its end.
//
// Thread: JobCore's; no locks. Lifetime: JobCore's.

#include <vector>

#include "supervisor/core/crew/core_basis.h"

namespace monarch {

class HostNames {
 public:
  HostNames(const CoreBasis& basis, std::vector<PoolHost>& mine) : basis_(basis), mine_(mine) {}
  // That of the machine, or its own where there is none.
  void take(HostId id);
  // Ranks get it as an address; what cannot be one is none.
  void learn_address(HostId id);
  // Of the state of a snapshot.
  void restored();

 private:
  const CoreBasis& basis_;
  std::vector<PoolHost>& mine_;
};

}  // namespace monarch
