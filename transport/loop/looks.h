#pragma once

// Looks: whether a loop does well to look for a while before it sleeps. Whoever sleeps is woken 20 µs late and more,
// and so is all that waits for it; whoever looks takes a processor from others. It pays where the next thing comes soon
// after the last one, as the two halves of a call do, and is wasted where little comes: an idle loop never looks. So
// this remembers how the last waits went, and decides. The loop looks, yielding between looks, and tells.
//
// WARNING: who yields where others compute gets its processor back milliseconds later (sched_yield(2)), while a sleeper
// that is woken gets one at once. So a look that took too long ends all looks for a while, and each further one for
// twice as long.
//
// Thread: the loop's. Lifetime: a value.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "transport/base/time.h"

namespace monarch {

class Looks {
 public:
  static constexpr Duration kAtMost = Duration::microseconds(30);  // one look
  // A sleep that was no longer than a look and a waking could have been a look that paid.
  static constexpr Duration kWaking = Duration::microseconds(20);
  static constexpr int kRemembered = 16;  // waits
  static constexpr Duration kRest = Duration::milliseconds(100);
  static constexpr Duration kLongestRest = Duration::seconds(30);
  static constexpr int kUndisturbed = 10'000;  // looks; then the next rest is short again

  // Half of the last ones did.
  bool pay(Instant now) const { return now >= rests_until_ && std::popcount(paid_) * 2 >= kRemembered; }

  void slept(Duration how_long) { remember(how_long <= kAtMost + kWaking); }
  void looked(Instant now, Duration how_long, bool in_vain) {
    if (how_long <= kAtMost + kWaking) {
      remember(!in_vain);
      if (++undisturbed_ >= kUndisturbed) rest_ = kRest;
      return;
    }
    rests_until_ = now + rest_;
    rest_ = std::min(rest_ + rest_, kLongestRest);
    undisturbed_ = 0;
    paid_ = 0;
  }

 private:
  void remember(bool paid) { paid_ = static_cast<std::uint16_t>((unsigned{paid_} << 1U) | (paid ? 1U : 0U)); }

  std::uint16_t paid_ = 0;  // a bit for each wait, the last one lowest
  static_assert(kRemembered == 16);
  Instant rests_until_;
  Duration rest_ = kRest;  // the next one
  int undisturbed_ = 0;    // looks since the last one
};

}  // namespace monarch
