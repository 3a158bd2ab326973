#include "tests/sim/exit_codes.h"

#include "cli/exit_code.h"
#include "supervisor/core/first_cause.h"

namespace monarch::sim {

bool exit_code_fits(const Verdict& verdict) {
  const int code = verdict.exit_code;
  switch (verdict.cause.kind) {
    case CauseKind::kNone: return code == kExitOk;
    case CauseKind::kRank: return code == exit_code_of(verdict.cause.end);
    case CauseKind::kHost: return code == kExitLost || code == kExitUnreachable;
    case CauseKind::kStart: return code == kExitUnreachable;
    case CauseKind::kTimeLimit: return code == kExitLost;
    case CauseKind::kRequest: return code == kExitStopped || code == kExitInterrupted;
    case CauseKind::kInternal: return code == kExitInternal;
  }
  return false;
}

}  // namespace monarch::sim
