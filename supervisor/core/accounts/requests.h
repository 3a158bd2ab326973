#pragma once

// Requests: for hosts on request, machines that somebody is asked for when they are needed, as Slurm for one more node.
// Whoever asks at once after a refusal gets the same answer: there is a pause, longer each time.
//
// Thread: JobCore's; no locks. Lifetime: JobCore's.

#include "supervisor/core/crew/core_basis.h"
#include "supervisor/core/crew/times.h"

namespace monarch {

class Requests {
 public:
  Requests(const CoreBasis& basis, HostRequests& mine) : basis_(basis), mine_(mine) {}
  void granted();
  void refused();
  // A gang that was parked has all of its hosts.
  void satisfied();
  template <class Visit>
  void each_time(Visit& visit) const {
    visit(mine_.no_request_before, TimeKind::kWait);
  }

 private:
  const CoreBasis& basis_;
  HostRequests& mine_;
};

}  // namespace monarch
