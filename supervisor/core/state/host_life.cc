#include "supervisor/core/state/host_life.h"

#include "transport/base/assert.h"

namespace monarch {

bool may_follow(HostPhase before, HostPhase next) {
  switch (before) {
    case HostPhase::kCold: return next == HostPhase::kLaunching;
    case HostPhase::kLaunching:
      return next == HostPhase::kLaunched || next == HostPhase::kDestroying || next == HostPhase::kEnded;
    case HostPhase::kLaunched:
      return next == HostPhase::kJoined || next == HostPhase::kDestroying || next == HostPhase::kEnded;
    case HostPhase::kJoined: return next == HostPhase::kDestroying || next == HostPhase::kEnded;
    case HostPhase::kDestroying:
      return next == HostPhase::kDestroying || next == HostPhase::kEnded || next == HostPhase::kLost;
    case HostPhase::kEnded: return next == HostPhase::kCold;
    case HostPhase::kLost: return next == HostPhase::kEnded || next == HostPhase::kCold;
  }
  return false;
}

void to(HostState& host, HostPhase next) {
  MONARCH_ASSERT_BECAUSE(may_follow(host.phase, next),
                         "I19: a host has one worker at a time, from its launch to its end");
  host.phase = next;
}

}  // namespace monarch
