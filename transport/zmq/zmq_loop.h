#pragma once

// ZmqLoop: a thread's loop over zmq sockets and everything its EventLoop watches, in that one's epoll. In a turn
// sockets come first, in the order in which they were added, each within a budget, so that control goes before bulk and
// neither starves the other; then the EventLoop takes its turn with timers. So every message that has arrived is seen
// before a timer declares its sender silent. A socket that nobody used and whose descriptor is silent is not asked, and
// costs nothing, however many there are.
//
// Thread: the EventLoop's. Lifetime: within the EventLoop's, and longer than every watch's owner.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "transport/loop/event_loop.h"
#include "transport/loop/looks.h"
#include "transport/zmq/socket.h"
#include "transport/zmq/unread_watch.h"

namespace monarch {

using ZmqWatchId = std::uint64_t;

class ZmqLoop {
 public:
  // How often a socket is looked at while others keep the loop busy. One that is looked at seldom wakes an idle loop
  // as the others do, and costs a busy one next to nothing, however much comes by it.
  enum class Pace : std::uint8_t { kEachTurn, kSeldom };
  static constexpr Duration kSeldomEvery = Duration::milliseconds(5);

  explicit ZmqLoop(EventLoop& loop) : loop_(loop) {}
  ZmqLoop(const ZmqLoop&) = delete;
  ZmqLoop& operator=(const ZmqLoop&) = delete;

  // `take_one` takes one message and answers whether there was one. The socket stays the caller's, which forgets the
  // watch before it closes the socket; a handler may forget any watch, its own included. One watch for a socket.
  ZmqWatchId watch(ZmqSocket& socket, std::function<bool()> take_one, Pace pace = Pace::kEachTurn);
  // Calls once when the socket can be sent to again. For a DEALER: a ROUTER can always be sent to by someone.
  void when_writable(ZmqWatchId id, std::function<void()> handler);
  // From the next turn on.
  void set_pace(ZmqWatchId id, Pace pace);
  void forget(ZmqWatchId id);

  // From now on the loop looks before it sleeps, yielding its processor between looks, while that pays and `may_look`
  // lets it; that is asked when looks begin to pay. For a process that others wait for, one on a host.
  void look_before_sleep(std::function<bool()> may_look) { may_look_ = std::move(may_look); }

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
    ZmqSocket* socket;  // nullptr: forgotten
    std::function<bool()> take_one;
    std::function<void()> writable;
    Pace pace;
    WatchId edges = 0;           // 0: the system has no room for it; it is asked at each turn, and the loop comes back
    bool to_ask = false;         // it is in to_ask_
    ZmqSocket::Events now = {};  // what it is served for in this turn
  };
  Watch* find(ZmqWatchId id);
  void hear_edges(Watch& watch);
  void drop_forgotten();
  void ask_later(Watch& watch);
  void ask(Instant now);
  void collect(Instant begin, Instant deadline);
  EventLoop::Collected wait(int milliseconds);
  bool looks_now(Instant now);
  void serve(Watch& watch);

  EventLoop& loop_;
  UnreadWatch unread_;
  ZmqWatchId next_id_ = 1;
  std::vector<std::unique_ptr<Watch>> watches_;  // by id
  std::vector<Watch*> to_ask_;                   // were used, or signalled, since they were asked
  std::vector<Watch*> ready_;                    // are served in this turn
  bool any_forgotten_ = false;
  std::size_t unheard_ = 0;  // watches without edges
  Instant seldom_due_;       // then those are looked at again
  std::function<bool()> may_look_;
  Looks looks_;
  bool looks_pay_ = false;
  bool lets_look_ = false;  // may_look_, when they began to
};

}  // namespace monarch
