#pragma once

// IdleTimer: lifetime.idle on a loop. It is told of every use of the job and says when nobody has used it for so long;
// it decides and stops nothing.
//
// Thread: the supervisor's loop. Lifetime: shorter than the loop's.

#include <cstddef>
#include <functional>

#include "supervisor/core/recovery/lifetime.h"
#include "transport/loop/event_loop.h"

namespace monarch {

class IdleTimer {
 public:
  struct Handlers {
    std::function<void(Duration left)> on_warning;
    std::function<void()> on_idle;
  };

  IdleTimer(EventLoop& loop, Duration limit, Handlers handlers);
  ~IdleTimer();
  IdleTimer(const IdleTimer&) = delete;
  IdleTimer& operator=(const IdleTimer&) = delete;

  void begin();  // all of the job is ready
  void viewers(std::size_t attached);
  void used();

 private:
  void arm();
  void turn();

  EventLoop& loop_;
  Duration limit_;
  Handlers handlers_;
  IdleWatch watch_;
  TimerId timer_ = 0;
};

}  // namespace monarch
