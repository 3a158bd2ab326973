#pragma once

// Pace: of how many hosts at a time something is begun that costs them, or the machine they share with us, some work:
// a launch, a start of ranks. It is the congestion window of TCP (RFC 5681): it grows by one with each host that
// answers in time, and one that does not halves it, once for all those that were under way with it. Who is late is
// awaited no longer here, so nobody's silence holds up the others; what follows from it is for whoever has a deadline
// for that host.
//
// Thread: a value.

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "transport/base/ids.h"
#include "transport/base/time.h"

namespace monarch {

class Pace {
 public:
  static constexpr std::size_t kFirst = 16;
  static constexpr std::size_t kLeast = 4;
  static constexpr Duration kInTime = Duration::seconds(2);

  // The host waits for its turn. One that waits already does so once.
  void want(HostId host);
  // Whose turn it is now, and is under way from now on; nothing: all wait for those that are.
  std::optional<HostId> next(Instant now);
  // It has done what it was to do.
  void answered(HostId host);
  // It is not wanted any more, or has failed: that tells nothing of how much there is to do.
  void forget(HostId host);

  bool is_idle() const { return queue_.empty() && under_way_.empty(); }
  // Those that have begun, and not answered.
  const std::map<HostId, Instant>& under_way() const { return under_way_; }
  std::size_t window() const { return window_; }

 private:
  // Time passes: those that are late.
  void turn(Instant now);

  std::size_t window_ = kFirst;
  std::deque<HostId> queue_;
  std::set<HostId> queued_;
  std::map<HostId, Instant> under_way_;  // since when
  Instant halved_at_;                    // who had begun before is not counted twice
};

}  // namespace monarch
