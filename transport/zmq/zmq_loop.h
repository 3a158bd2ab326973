#pragma once

// ZmqLoop: a thread's loop over a few zmq sockets and, behind one descriptor, everything its EventLoop watches.
// zmq_poll waits for both. In a turn sockets come first, in the order in which they were added, each within a budget,
// so that control goes before bulk and neither starves the other; then the EventLoop takes its turn with timers. So
// every message that has arrived is seen before a timer declares its sender silent.
//
// Thread: the EventLoop's. Lifetime: within the EventLoop's, and longer than every watch's owner.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "transport/loop/event_loop.h"
#include "transport/zmq/socket.h"
#include "transport/zmq/unread_watch.h"

namespace monarch {

using ZmqWatchId = std::uint64_t;

class ZmqLoop {
 public:
  // How often a socket is looked at while others keep the loop busy. One that is looked at seldom wakes an idle loop
  // as the others do, and costs a busy one next to nothing, however many there are.
  enum class Pace : std::uint8_t { kEachTurn, kSeldom };
  static constexpr Duration kSeldomEvery = Duration::milliseconds(5);

  explicit ZmqLoop(EventLoop& loop) : loop_(loop) {}
  ZmqLoop(const ZmqLoop&) = delete;
  ZmqLoop& operator=(const ZmqLoop&) = delete;

  // `take_one` takes one message and answers whether there was one. The socket stays the caller's, which forgets the
  // watch before it closes the socket; a handler may forget any watch, its own included.
  ZmqWatchId watch(ZmqSocket& socket, std::function<bool()> take_one, Pace pace = Pace::kEachTurn);
  // Calls once when the socket can be sent to again. For a DEALER: a ROUTER can always be sent to by someone.
  void when_writable(ZmqWatchId id, std::function<void()> handler);
  // From the next turn on.
  void set_pace(ZmqWatchId id, Pace pace);
  void forget(ZmqWatchId id);

  EventLoop& loop() { return loop_; }
  // Of all connections that are served here.
  UnreadWatch& unread() { return unread_; }

  // Turns until stop() of either loop.
  void run();
  void stop() { loop_.stop(); }
  // One turn that waits at most until `deadline`.
  void turn(Instant deadline);

 private:
  struct Watch {
    ZmqWatchId id;
    void* native;  // nullptr: forgotten
    std::function<bool()> take_one;
    std::function<void()> writable;
    Pace pace;
  };
  Watch& watch_of(ZmqWatchId id);
  void serve(Watch& watch, bool readable, bool writable);

  EventLoop& loop_;
  UnreadWatch unread_;
  ZmqWatchId next_id_ = 1;
  std::vector<std::unique_ptr<Watch>> watches_;
  Instant seldom_due_;  // then those are looked at again
};

}  // namespace monarch
