#pragma once

// Arrivals: how regularly one host's beats come, from the last hundred pauses between them; and from when on a pause is
// so long that this host would make it once in a hundred million (φ = 8, the accrual detector of Hayashibara et al.,
// 2004). Only suspicion may come of it, and only sooner: nothing that ends a process depends on statistics.
//
// Thread: a value.

#include <array>
#include <cstddef>
#include <optional>

#include "transport/base/time.h"

namespace monarch {

class Arrivals {
 public:
  explicit Arrivals(Duration heartbeat) : heartbeat_(heartbeat) {}

  // Beats that were sent before their time, since something changed, say nothing of the rhythm and are left out.
  void add(Duration pause);
  // Nothing before there are enough. Never below two heartbeats: one lost beat is no sign.
  std::optional<Duration> unlikely_after() const { return unlikely_after_; }

 private:
  static constexpr std::size_t kKept = 100;
  static constexpr std::size_t kEnough = 20;

  Duration heartbeat_;
  std::array<Duration, kKept> pauses_{};
  std::size_t count_ = 0;
  std::size_t next_ = 0;
  std::optional<Duration> unlikely_after_;
};

}  // namespace monarch
