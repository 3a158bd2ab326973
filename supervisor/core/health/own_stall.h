#pragma once

// OwnStall: whether this process ran. It is asked often; when it was not asked for longer than a beat takes, it stood
// still: a laptop slept, a container was paused, Slurm suspended the job, or the machine has too much to do. What
// others owe us counts no time in which we could not have heard them.
//
// Thread: a value of the supervisor's loop.

#include <optional>
#include <utility>

#include "transport/base/time.h"

namespace monarch {

class OwnStall {
 public:
  static constexpr Duration kTurn = Duration::milliseconds(500);  // it is asked so often, at least
  static constexpr Duration kStall = Duration::seconds(1);        // a beat; less is nobody's delay

  // For how long it stood still until now, told once. Nothing: it ran.
  std::optional<Duration> turn(Instant now) {
    const std::optional<Instant> before = std::exchange(last_, now);
    if (!before || now - *before <= kTurn + kStall) return std::nullopt;
    return now - *before;
  }

 private:
  std::optional<Instant> last_;
};

}  // namespace monarch
