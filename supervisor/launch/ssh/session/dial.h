#pragma once

// dial(): a TCP connection to a host by a deadline, or why there is none, in the words and classes of the system. It
// knows no SSH.
//
// Thread: any, and it waits there, until the deadline or the cancellation.

#include <poll.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/core/health/fair_deadline.h"
#include "supervisor/core/state/launch_failure.h"
#include "supervisor/launch/ssh/session/ssh_target.h"
#include "transport/base/clock.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"

namespace monarch {

// How long, and until what, the steps of a session may wait in all. Time in which its own thread was late does not
// count: who waits looks at it, and it remembers. A copy is of its own.
class Patience {
 public:
  // `cancel`: readable: give up at once.
  Patience(Duration limit, int cancel, Instant now = boot_now()) : deadline_(limit, now), cancel_(cancel) {}

  // For one of several steps: as much of what is left. Ends before this one does.
  Patience part(std::int64_t of) const;
  // Whether it is over; asked as FairDeadline is.
  bool over(Instant now) const;
  Instant look_by(Instant now) const { return deadline_.look_by(now); }
  int cancel() const { return cancel_; }
  // For the end of a message: how late this machine was meanwhile; mostly nothing.
  std::string late() const { return late_words(deadline_.late()); }

 private:
  mutable FairDeadline deadline_;
  int cancel_;
  const Patience* whole_ = nullptr;  // of which this is a part: who looks at this looks at that
};

enum class WaitEnd : std::uint8_t { kReady, kTimeout, kCancelled };

// For any of `events` of poll(2) on the descriptor; an error or a hangup counts as ready.
WaitEnd wait_for(int fd, short events, const Patience& patience);
// The same of several; which of them are ready is in `revents`.
WaitEnd wait_for_any(std::vector<pollfd>& watched, const Patience& patience);
// The same, until then: nobody is blamed for that.
WaitEnd wait_until(std::vector<pollfd>& watched, Instant until, int cancel);

struct DialFailure {
  LaunchFailureKind kind = LaunchFailureKind::kOther;
  std::string message;
};

// The socket does not block, and sends without waiting to fill a segment.
std::variant<UniqueFd, DialFailure> dial(const SshTarget& target, const Patience& patience);

}  // namespace monarch
