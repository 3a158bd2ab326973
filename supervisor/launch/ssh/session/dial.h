#pragma once

// dial(): a TCP connection to a host by a deadline, or why there is none, in the words and classes of the system. It
// knows no SSH.
//
// Thread: any, and it waits there, until the deadline or the cancellation.

#include <poll.h>

#include <string>
#include <variant>
#include <vector>

#include "supervisor/core/state/launch_failure.h"
#include "supervisor/launch/ssh/session/ssh_target.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"

namespace monarch {

// How long, and until what, a step of a session may wait.
struct Patience {
  Instant until;
  int cancel = -1;  // readable: give up at once

  Patience sooner(Instant other) const { return {other < until ? other : until, cancel}; }
};

enum class WaitEnd : std::uint8_t { kReady, kTimeout, kCancelled };

// For any of `events` of poll(2) on the descriptor; an error or a hangup counts as ready.
WaitEnd wait_for(int fd, short events, const Patience& patience);
// The same of several; which of them are ready is in `revents`.
WaitEnd wait_for_any(std::vector<pollfd>& watched, const Patience& patience);

struct DialFailure {
  LaunchFailureKind kind = LaunchFailureKind::kOther;
  std::string message;
};

// The socket does not block, and sends without waiting to fill a segment.
std::variant<UniqueFd, DialFailure> dial(const SshTarget& target, const Patience& patience);

}  // namespace monarch
