#pragma once

// JoiningThread: a thread whose work is told to end by a descriptor, and which its destructor joins. One that has a
// loop and takes orders is a LoopThread.
//
// Thread: the owner's, begin_stop() any; the work is its own thread's. Lifetime: within that of all its work uses.

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "transport/base/result.h"
#include "transport/base/system/thread_limits.h"
#include "transport/base/unique_fd.h"

namespace monarch {

class JoiningThread {
 public:
  // Runs work(stop); `stop` is readable from begin_stop() on. kBusy: a limit is reached, which the message names.
  template <class Work>
  static Result<std::unique_ptr<JoiningThread>> start(Work work) {
    UniqueFd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!stop.valid()) return errno_error("eventfd", errno);
    std::unique_ptr<JoiningThread> made(new JoiningThread(std::move(stop)));
    try {
      made->thread_ = std::thread([work = std::move(work), fd = made->stop_.get()]() mutable { work(fd); });
    } catch (const std::system_error& error) {
      return thread_error(error.code().value());
    }
    return made;
  }
  JoiningThread(const JoiningThread&) = delete;
  JoiningThread& operator=(const JoiningThread&) = delete;
  ~JoiningThread() {
    begin_stop();
    if (thread_.joinable()) thread_.join();
  }

  void begin_stop() {
    const std::uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof one);  // cannot be full: it is written a few times
  }

 private:
  explicit JoiningThread(UniqueFd stop) : stop_(std::move(stop)) {}

  UniqueFd stop_;  // an eventfd
  std::thread thread_;
};

}  // namespace monarch
