// How a job ends: its verdict, its stages from the last to the first, its workers.

#include <algorithm>
#include <optional>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/recovery/lifetime.h"
#include "supervisor/core/state/gang_life.h"
#include "supervisor/core/state/job_life.h"
#include "transport/base/assert.h"
#include "transport/base/exit_code.h"
#include "transport/base/json.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

// Of the highest stage that has not ended: the others wait until it has. A kill waits for nothing.
void JobCore::stop_gangs() {
  stop_crews();
  each_gang([this](MeshId m, GangId g) {
    const auto phase = gang(m, g).phase;
    const bool runs_nothing = waits(phase) || is_parked(phase);
    if (runs_nothing) stop_gang(m, g, 0, Duration::zero());
  });
  const std::optional<std::uint32_t> stage = highest_stage(basis_);
  each_gang([&](MeshId m, GangId g) {
    if (!state_.kill_ordered && stages_.stage_of(m) != stage) return;
    const StopPolicy& policy = mesh_spec(m).stop;
    const bool failing = is_failing(gang(m, g).phase);
    if (failing && !state_.kill_ordered) return;  // it is being stopped already, with after_failure
    stop_gang(m, g, policy.signal, state_.kill_ordered ? Duration::zero() : grace_left(basis_, policy.grace));
  });
}

// The next stage, once the one above it has ended.
void JobCore::check_stopping() {
  while (const std::optional<std::uint32_t> stage = highest_stage(basis_)) {
    bool told = true;
    each_gang([&](MeshId m, GangId g) {
      const auto phase = gang(m, g).phase;
      told = told && (stages_.stage_of(m) != *stage || !runs(phase));
    });
    if (told) return;
    stop_gangs();
  }
}

void JobCore::stop_gang(MeshId mesh, GangId g, std::int32_t signal, Duration grace) {
  GangState& state = gang(mesh, g);
  state.progress_deadline = Instant::never();  // what is being stopped makes none
  bool begins = false;
  switch (state.phase) {
    case GangPhase::kWaiting:
    case GangPhase::kReserving:
    case GangPhase::kParked:  // no process was started
      to(state, GangPhase::kStopped);
      return crews_.forget({mesh, g});
    case GangPhase::kStarting:
    case GangPhase::kRunning:
      to(state, GangPhase::kStopping);
      begins = true;
      break;
    case GangPhase::kFailing:
    case GangPhase::kStopping: break;  // said again, with a shorter grace or after a crash of the supervisor
    case GangPhase::kDone:
    case GangPhase::kFailed:
    case GangPhase::kStopped: return;
  }
  if (begins && grace > Duration::zero()) tell_stopping(basis_, mesh, g, signal, grace);
  (void)crews_.stop({mesh, g}, {.signal = signal,
                                .grace = grace,
                                .deadline = now_ + grace + limits::kKillDeadline + kStopMargin,
                                .again = true});
  check_gang(mesh, g);
}

}  // namespace monarch
