#pragma once

// Inbox<T>: how threads exchange values. Any thread puts; the owner is woken through an eventfd and takes all. Bounded:
// put() answers false when full, and the sender decides what that means. A WatchedInbox is one that a loop takes.
//
// Thread: put() from any, the rest from the owner. Lifetime: joined threads first, then the inbox, then its loop.

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"

namespace monarch {

template <class T>
class Inbox {
 public:
  static Result<std::unique_ptr<Inbox>> create(std::size_t capacity) {
    UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake.valid()) return errno_error("eventfd", errno);
    return std::unique_ptr<Inbox>(new Inbox(std::move(wake), capacity));
  }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  [[nodiscard]] bool put(T value) {
    {
      const std::lock_guard lock(mutex_);
      if (values_.size() >= capacity_) return false;
      values_.push_back(std::move(value));
      if (values_.size() > 1) return true;  // the owner was woken for the first and has not taken it yet
    }
    const std::uint64_t one = 1;
    // The counter cannot overflow: it is written once per batch and reset by take_all().
    (void)!::write(wake_.get(), &one, sizeof one);
    return true;
  }

  // Readable while values wait.
  int descriptor() const { return wake_.get(); }

  std::vector<T> take_all() {
    std::uint64_t count = 0;
    (void)!::read(wake_.get(), &count, sizeof count);  // EAGAIN: nothing was put, and the answer below is empty
    std::vector<T> values;
    const std::lock_guard lock(mutex_);
    values.swap(values_);
    return values;
  }

 private:
  Inbox(UniqueFd wake, std::size_t capacity) : wake_(std::move(wake)), capacity_(capacity) {}

  UniqueFd wake_;
  std::size_t capacity_;
  std::mutex mutex_;
  std::vector<T> values_;
};

template <class T>
class WatchedInbox {
 public:
  // `take` gets each value, in the order of put(); `taken`, which may be empty, comes after those of one turn.
  // Either may destroy this.
  static Result<std::unique_ptr<WatchedInbox>> create(EventLoop& loop, std::size_t capacity,
                                                      std::function<void(T)> take, std::function<void()> taken = {}) {
    std::unique_ptr<WatchedInbox> made(new WatchedInbox(loop));
    MONARCH_ASSIGN(made->inbox_, Inbox<T>::create(capacity));
    const auto on_ready = [inbox = made->inbox_.get(), take = std::move(take), taken = std::move(taken)](Readiness) {
      for (T& value : inbox->take_all()) take(std::move(value));
      if (taken) taken();
    };
    MONARCH_ASSIGN(made->watch_, loop.watch(made->inbox_->descriptor(), Interest::kRead, on_ready));
    return made;
  }
  WatchedInbox(const WatchedInbox&) = delete;
  WatchedInbox& operator=(const WatchedInbox&) = delete;
  ~WatchedInbox() { loop_.forget(watch_); }

  Inbox<T>& inbox() { return *inbox_; }

 private:
  explicit WatchedInbox(EventLoop& loop) : loop_(loop) {}

  EventLoop& loop_;
  std::unique_ptr<Inbox<T>> inbox_;
  WatchId watch_ = 0;  // no watch has this number
};

}  // namespace monarch
