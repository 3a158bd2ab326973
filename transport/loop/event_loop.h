#pragma once

// EventLoop: one epoll over the descriptors of a thread, a timer queue, and a clock read once a turn. The earliest
// timer is also armed in a timerfd on CLOCK_BOOTTIME in the same epoll: a wait in epoll_wait does not count the time
// that the machine was suspended, and a lease must not outlive that. It knows no ZeroMQ: a loop around this one
// (transport/zmq/zmq_loop.h) has the descriptors of its sockets noted as they are collected, and serves them before the
// rest of the turn.
//
// A turn: collect what is ready, read the clock, run the handlers of ready descriptors in the order the kernel gave,
// then the timers that are due, then the deferred calls.
//
// Thread: the one that made it, or that was given it before its first turn. Lifetime: outlives every watch and timer
// made from it. No handler may destroy it.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"

namespace monarch {

// What a handler is told about its descriptor.
struct Readiness {
  bool readable = false;
  bool writable = false;
  bool hangup = false;  // EPOLLHUP, EPOLLRDHUP or EPOLLERR; data may still be there to read
};

enum class Interest : std::uint8_t { kRead, kWrite, kReadWrite, kNone };

using WatchId = std::uint64_t;
using TimerId = std::uint64_t;

class EventLoop {
 public:
  static Result<std::unique_ptr<EventLoop>> create();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // The descriptor stays the caller's, which must forget() the watch before it closes it: an epoll set holds what the
  // descriptor refers to, not its number, and a duplicate elsewhere would keep it reporting (epoll(7)). A handler may
  // forget any watch, its own included: a forgotten one is not called again, even if it was ready in this turn.
  Result<WatchId> watch(int fd, Interest interest, std::function<void(Readiness)> handler);
  // kNone still reports a hangup, at every turn.
  void change(WatchId id, Interest interest);
  void forget(WatchId id);
  // For a loop around this one: `note` is called each time that `fd` gets readable, while a turn collects what is ready
  // and before any handler runs. It only takes a note. As above, but change() is not for it.
  Result<WatchId> watch_edges(int fd, std::function<void()> note);

  // Runs once, at the first turn at or after `when`, in the order of `when`; one set for now by a timer's handler runs
  // in the next turn. Cancelling a timer that ran is allowed.
  TimerId at(Instant when, std::function<void()> handler);
  void cancel(TimerId id);

  // Runs at the end of this turn; of the next, if called outside one or by a deferred call.
  void defer(std::function<void()> call);

  // From here on each step adds one there, for who looks whether this loop goes on. Owners: this, and who reads it.
  void count_steps_in(std::shared_ptr<std::atomic<std::uint64_t>> count) { steps_ = std::move(count); }
  // A piece of work that a handler does among many; each handler, timer and deferred call is one anyway.
  void step() const {
    if (steps_) steps_->fetch_add(1, std::memory_order_relaxed);
  }

  // The clock as of this turn's start, or of the last one's outside.
  Instant now() const { return now_; }
  // For a loop around this one that runs handlers of its own before turn(): they see the time that it is.
  void read_clock();

  int descriptor() const { return epoll_.get(); }
  // When the next turn is due without any descriptor being ready; never() if no timer is set, now() if a call waits.
  Instant next_due() const;
  // One turn without waiting.
  void turn();

  // That in two, for a loop around this one: collects what is ready, after a wait of at most so long (-1: without end),
  // and reads the clock; then runs what was collected, the timers and the deferred calls.
  enum class Collected : std::uint8_t {
    kNothing,
    kAll,
    kPart,  // there may be more than a turn takes, edges among it
  };
  Collected collect(int timeout_milliseconds);
  void finish_turn();

  // One turn, waiting in epoll_wait until it is due.
  void run_once();
  // Such turns until stop().
  void run();
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }
  // The longest wait before `due`, in milliseconds for epoll_wait: -1 for never, rounded up.
  static int wait_milliseconds(Instant now, Instant due);

 private:
  // Owners: the watch, and the turn that runs the handler, which may forget its own watch.
  using Handler = std::shared_ptr<const std::function<void(Readiness)>>;
  struct Watch {
    int fd;
    Handler handler;
  };

  struct Ready {
    WatchId id;
    Readiness readiness;
  };

  EventLoop(UniqueFd epoll, UniqueFd alarm);
  Result<WatchId> add(WatchId id, int fd, std::uint32_t events, std::function<void(Readiness)> handler);
  void run_ready();
  void run_timers();
  void run_deferred();
  void arm();

  UniqueFd epoll_;
  UniqueFd alarm_;                        // the timerfd
  Instant armed_for_ = Instant::never();  // never() while it is disarmed
  Instant now_;
  bool stopped_ = false;
  std::shared_ptr<std::atomic<std::uint64_t>> steps_;
  std::uint64_t next_id_ = 1;
  std::unordered_map<WatchId, Watch> watches_;
  std::vector<Ready> ready_;  // collected, and not run yet
  std::map<std::pair<Instant, TimerId>, std::function<void()>> timers_;
  std::unordered_map<TimerId, Instant> timer_due_;
  std::vector<std::function<void()>> deferred_;
};

}  // namespace monarch
