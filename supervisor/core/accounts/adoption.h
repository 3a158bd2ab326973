#pragma once

// Adoption: a supervisor that comes back takes its hosts and ranks over as they are. Nothing that lives is stopped or
// started by this; what was said and lost is said again by outstanding(), at the same generation, once a host's beat
// shows that it is missing.
//
// Thread: JobCore's; no locks. Lifetime: JobCore's.

#include "supervisor/core/crew/core_basis.h"
#include "supervisor/core/crew/times.h"
#include "supervisor/core/state/events.h"

namespace monarch {

class Adoption {
 public:
  Adoption(const CoreBasis& basis, AdoptionState& mine) : basis_(basis), mine_(mine) {}

  void begin();
  // After the host is known to be there.
  void on(const WorkerJoined& event);
  // Has every host that was connected before spoken to us, and told what runs there? Or it is out.
  void look();

  template <class Visit>
  void each_time(Visit& visit) const {
    visit(mine_.returned_at, TimeKind::kPast);
  }

 private:
  const CoreBasis& basis_;
  AdoptionState& mine_;
};

}  // namespace monarch
