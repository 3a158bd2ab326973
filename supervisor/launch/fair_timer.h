#pragma once

// FairTimer: calls once, by a loop, when somebody else's time is up. Time in which the loop was late does not count
// (supervisor/core/health/fair_deadline.h).
//
// Thread: the loop's. Lifetime: shorter than the loop's; its end stops it. The call may end it.

#include <functional>
#include <string>
#include <utility>

#include "supervisor/core/health/fair_deadline.h"
#include "transport/loop/event_loop.h"

namespace monarch {

class FairTimer {
 public:
  // `late`: how late we were meanwhile, for the end of a message; mostly nothing (late_words()).
  using Over = std::function<void(const std::string& late)>;

  explicit FairTimer(EventLoop& loop) : loop_(loop), deadline_(Duration(), Instant()) {}
  FairTimer(const FairTimer&) = delete;
  FairTimer& operator=(const FairTimer&) = delete;
  ~FairTimer() { stop(); }

  // Instead of what it waited for before.
  void start(Duration limit, Over over) { start(FairDeadline(limit, loop_.now()), std::move(over)); }
  void start(FairDeadline deadline, Over over);
  void stop();
  bool runs() const { return timer_ != 0; }
  Instant until() const { return deadline_.until(); }  // as of what is known by now

 private:
  void look_later();

  EventLoop& loop_;
  FairDeadline deadline_;
  Over over_;
  TimerId timer_ = 0;
};

}  // namespace monarch
