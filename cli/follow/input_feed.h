#pragma once

// InputFeed: this process's standard input on its way to the ranks that get it, a piece at a time: the next is read
// when the ranks have the one before. So who writes to us waits for them, as before any pipe. A piece whose answer was
// lost is said again, to the next supervisor, too; said twice it counts once.
//
// Thread: the loop's. Lifetime: shorter than the loop's.

#include <cstdint>
#include <functional>
#include <string>

#include "transport/base/result.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/viewer.h"

namespace monarch {

class InputFeed {
 public:
  using Ask = std::function<void(const InputRequest&, std::function<void(Result<Accepted>)>)>;

  // `fd` stays the caller's; below 0: there is nothing, and ranks get its end at once.
  InputFeed(EventLoop& loop, int fd) : loop_(loop), fd_(fd) {}
  InputFeed(const InputFeed&) = delete;
  InputFeed& operator=(const InputFeed&) = delete;
  ~InputFeed();

  // Somebody listens from now on.
  void connected(Ask ask);
  // Nobody does.
  void lost();

 private:
  void wait();
  void read();
  void say();
  void answered(std::uint64_t connection, const Result<Accepted>& with);
  void stop();

  EventLoop& loop_;
  int fd_;
  Ask ask_;
  std::uint64_t connections_ = 0;
  InputRequest piece_;  // that is not taken yet
  bool has_piece_ = false;
  bool done_ = false;  // nothing is read any more
  WatchId watch_ = 0;
};

}  // namespace monarch
