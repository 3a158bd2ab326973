#pragma once

// Tie: the end of a pipe or a socket whose other end a program holds for whom the job is there. Whatever ends the
// program closes that, and this says so, once; what comes by it is not looked at.
//
// Thread: the supervisor's loop. Lifetime: shorter than the loop's.

#include <functional>
#include <memory>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"

namespace monarch {

class Tie {
 public:
  static Result<std::unique_ptr<Tie>> create(EventLoop& loop, UniqueFd fd, std::function<void()> on_end);
  ~Tie();
  Tie(const Tie&) = delete;
  Tie& operator=(const Tie&) = delete;

 private:
  Tie(EventLoop& loop, UniqueFd fd, std::function<void()> on_end);
  void read();

  EventLoop& loop_;
  UniqueFd fd_;
  std::function<void()> on_end_;
  WatchId watch_ = 0;
};

}  // namespace monarch
