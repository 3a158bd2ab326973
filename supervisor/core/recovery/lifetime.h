#pragma once

// Lifetime: when a job that was left up is stopped: `lifetime.max` after all of it was ready, or after `lifetime.idle`
// in which nobody used it: no viewer attached, no request, no output of a rank. Each is announced before. IdleWatch
// judges for the driver and is not journalled; what follows from it is a StopOrdered like any other.
//
// Thread: one; no locks.

#include <cstddef>

#include "transport/base/time.h"

namespace monarch {

// How long before the end of `limit` it is announced: a tenth of it, at most five minutes.
Duration warning_before(Duration limit);

class IdleWatch {
 public:
  enum class Says : std::uint8_t { kNothing, kWarn, kStop };

  // `limit` forever(): it never says anything. It counts from begin().
  explicit IdleWatch(Duration limit) : limit_(limit) {}

  void begin(Instant now);
  void viewers(std::size_t attached, Instant now);
  void used(Instant now);
  // Each is said once, a warning again after the job was used meanwhile.
  Says turn(Instant now);
  Instant next_deadline() const;

 private:
  bool counts() const { return begun_ && attached_ == 0 && !stopped_ && limit_ < Duration::forever(); }

  Duration limit_;
  Instant since_;  // of the last use
  std::size_t attached_ = 0;
  bool begun_ = false;
  bool warned_ = false;
  bool stopped_ = false;
};

}  // namespace monarch
