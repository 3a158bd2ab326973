#include "tests/sim/exit_codes.h"

#include <algorithm>

#include "supervisor/core/state/first_cause.h"
#include "transport/base/exit_code.h"

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

// One that was stopped because it made no progress has no end of its own.
int code_of_rank(const FirstCause& cause) { return made_no_progress(cause) ? kExitHung : exit_code_of(cause.end); }

}  // namespace

bool made_no_progress(const FirstCause& cause) {
  return cause.end.kind == EndKind::kNone && cause.summary.starts_with("made no progress: ");
}

bool exit_code_fits(const Verdict& verdict) {
  const int code = verdict.exit_code;
  switch (verdict.cause.kind) {
    case CauseKind::kNone: return code == kExitOk;
    // What its host had run out of is not the rank's doing. Of one that was killed while it ended another one has the
    // code.
    case CauseKind::kRank:
      if (verdict.cause.end.after_our_signal) return code != kExitOk;
      return code == code_of_rank(verdict.cause) || (is_lack_of_host(verdict.cause.end) && code == kExitLost);
    case CauseKind::kHost: return code == kExitLost || code == kExitUnreachable;
    case CauseKind::kStart: {
      if (code == (only_host_keys(verdict) ? kExitHostKey : kExitUnreachable)) return true;
      // A rank of a sidecar that was never ready: the others never start.
      const FirstCause& cause = verdict.cause;
      return cause.summary.starts_with("sidecar ") && cause.rank.has_value() && code != kExitOk &&
             (code == code_of_rank(cause) || (is_lack_of_host(cause.end) && code == kExitLost));
    }
    case CauseKind::kTimeLimit: return code == kExitLost;
    case CauseKind::kRequest:
      return code == kExitStopped || code == kExitInterrupted ||
             (code == kExitOk && verdict.outcome == Outcome::kStopped);
    case CauseKind::kInternal: return code == kExitInternal;
  }
  return false;
}

}  // namespace monarch::sim
