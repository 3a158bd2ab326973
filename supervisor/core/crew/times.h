#pragma once

// Times of the state: each part of it visits its own once, with what they are for; who looks for the next one, moves
// all of them to another clock, or gives back what a stand-still took, says only which kinds it means.
//
// Thread: values.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "transport/base/time.h"

namespace monarch {

enum class TimeKind : std::uint8_t {
  kPast,      // something happened then
  kGrace,     // until then something counts; nobody has to be woken for it
  kPatience,  // somebody is given until then
  kAlarm,     // something is to be done then, however long we slept
  kFence,     // what ran there may act until then (I3); waited for as kWait is
  kWait,      // somebody waits until then; once it has come and all who wait were looked at it wakes nobody
};

// Beyond grace and KILL, and for what is still to start, when a supervisor comes back: time for hosts to dial again,
// and for the words to travel.
inline constexpr Duration kAnswersWithin = Duration::seconds(20);

// Of nobody, it is not moved: before the boot, and never.
inline bool is_set(Instant time) { return time != Instant() && time != Instant::never(); }

// The first that is due, of times after `looked_at` where somebody waits.
class NextTime {
 public:
  explicit NextTime(Instant looked_at) : looked_at_(looked_at) {}
  void operator()(Instant time, TimeKind kind) {
    const bool wakes = kind == TimeKind::kPatience || kind == TimeKind::kAlarm ||
                       ((kind == TimeKind::kWait || kind == TimeKind::kFence) && time > looked_at_);
    if (wakes) next_ = std::min(next_, time);
  }
  Instant get() const { return next_; }

 private:
  Instant looked_at_;
  Instant next_ = Instant::never();
};

// Who stood still with us has had no time either.
struct GiveBack {
  Duration gap;
  void operator()(Instant& time, TimeKind kind) const {
    const bool given = kind == TimeKind::kPatience || kind == TimeKind::kGrace;
    if (given && is_set(time)) time = time + gap;
  }
};

// To the clock of another boot, with the wall clock between them. A fence trusts no wall clock: all that was left of it
// is waited for (I3).
struct MoveClock {
  Duration by;
  Instant last_seen;  // by the clock of before
  Instant now;
  void operator()(Instant& time, TimeKind kind) const {
    if (kind == TimeKind::kFence) {
      time = time > last_seen ? now + (time - last_seen) : Instant();
    } else if (is_set(time)) {
      time = time + by;
    }
  }
};

template <class Visit>
void visit_all(std::vector<Instant>& times, TimeKind kind, Visit& visit) {
  for (Instant& time : times) visit(time, kind);
}

// No sooner than that, if it is set at all.
inline void not_before(Instant& deadline, Instant earliest) {
  if (deadline != Instant::never()) deadline = std::max(deadline, earliest);
}

}  // namespace monarch
