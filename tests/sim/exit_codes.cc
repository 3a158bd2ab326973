#include "tests/sim/exit_codes.h"

#include <algorithm>

#include "cli/exit_code.h"
#include "supervisor/core/first_cause.h"

namespace monarch::sim {

namespace {

// Hosts that are wanting, and not what a host that started lacks.
bool only_host_keys(const Verdict& verdict) {
  if (!verdict.cause.rule.starts_with("host does not start")) return false;
  const auto& failed = verdict.failed_hosts;
  return !failed.empty() && verdict.failed_hosts_untold == 0 &&
         std::all_of(failed.begin(), failed.end(),
                     [](const HostFailure& host) { return host.kind.starts_with("host key"); });
}

}  // namespace

bool exit_code_fits(const Verdict& verdict) {
  const int code = verdict.exit_code;
  switch (verdict.cause.kind) {
    case CauseKind::kNone: return code == kExitOk;
    case CauseKind::kRank: return code == exit_code_of(verdict.cause.end);
    case CauseKind::kHost: return code == kExitLost || code == kExitUnreachable;
    case CauseKind::kStart: return code == (only_host_keys(verdict) ? kExitHostKey : kExitUnreachable);
    case CauseKind::kTimeLimit: return code == kExitLost;
    case CauseKind::kRequest: return code == kExitStopped || code == kExitInterrupted;
    case CauseKind::kInternal: return code == kExitInternal;
  }
  return false;
}

}  // namespace monarch::sim
