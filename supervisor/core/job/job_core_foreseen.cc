// An end that is foreseen: who gave the hosts takes them back at a time. Ranks are told at once, and may save what they
// have; nothing is started again, no host takes another's place and no budget is spent; the job is stopped early enough
// to have ended by then.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/state/gang_life.h"
#include "transport/base/exit_code.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

// However its ranks ended: they were told to, or were killed by who takes their hosts.
void JobCore::ended_as_foreseen(MeshId mesh, GangId g) {
  to(gang(mesh, g), GangPhase::kFailed);
  gang(mesh, g).failure.reset();
  basis_.say_of_gang(mesh, g, EventKind::kGangEnded, Severity::kInfo,
                     text("has ended, and is not started again: ", state_.foreseen->why));
}

}  // namespace monarch
