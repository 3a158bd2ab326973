#pragma once

// OwnStall: whether this process ran. It is asked often; when it was not asked for long, it stood still: a laptop
// slept, a container was paused, Slurm suspended the job.
//
// Thread: a value of the supervisor's loop.

#include <optional>
#include <utility>

#include "transport/base/time.h"

namespace monarch {

class OwnStall {
 public:
  static constexpr Duration kTurn = Duration::milliseconds(500);  // it is asked so often, at least
  static constexpr Duration kStall = Duration::seconds(2);        // less is a busy machine's

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
