#pragma once

// ServantSilence: how long a process beside the daemon has been silent by its own doing. Time in which the daemon
// itself did not look is nobody's silence, and neither is time in which the process waited for a processor: on a
// machine with many others it is slow, not deaf. That counts for so long only: one that is killed is started again.
//
// Thread: a value; pure.

#include <algorithm>

#include "transport/base/time.h"

namespace monarch {

class ServantSilence {
 public:
  static constexpr std::int64_t kMostTimes = 10;  // what the process waited for counts up to so many times `most`

  explicit ServantSilence(Duration most) : most_(most) {}

  // It has said something. `waited`: for a processor, since it began.
  void heard(Instant now, Duration waited) {
    heard_ = now;
    excused_ = Duration::zero();
    waited_ = waited;
  }
  void did_not_look(Duration late, Instant now) { excused_ = std::min(excused_ + late, now - heard_); }
  bool is_too_long(Instant now, Duration waited) const {
    const Duration for_processors = std::clamp(waited - waited_, Duration::zero(), most_ * kMostTimes);
    return now - heard_ >= most_ + excused_ + for_processors;
  }

 private:
  const Duration most_;
  Instant heard_;
  Duration excused_;
  Duration waited_;
};

}  // namespace monarch
