#pragma once

// LoopThread<Order>: a thread with a loop that takes orders. Its body is made, used and destroyed by the thread:
// `body.run()` turns the loop until it is stopped, `body.take_orders()` is called when there are some. Answers go to a
// WatchedInbox of the owner's. The destructor stops the loop, once what was put before is taken, and joins.
//
// Thread: the owner's, put() any; the body is the thread's. Lifetime: shorter than that of all that the body uses.

#include <cstddef>
#include <memory>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/result.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/inbox.h"
#include "transport/loop/joining_thread.h"

namespace monarch {

template <class Order>
class LoopThread {
 public:
  // `make(loop, orders)` makes the body; `capacity`: of orders that wait.
  template <class Make>
  static Result<std::unique_ptr<LoopThread>> start(std::size_t capacity, Make make) {
    std::unique_ptr<LoopThread> made(new LoopThread());
    MONARCH_ASSIGN(made->loop_, EventLoop::create());
    MONARCH_ASSIGN(made->orders_, Inbox<Order>::create(capacity));
    auto work = [self = made.get(), make = std::move(make)](int stop) mutable { self->run(make, stop); };
    MONARCH_ASSIGN(made->thread_, JoiningThread::start(std::move(work)));
    return made;
  }
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  // False: it has not taken the last `capacity` orders, and this one is lost: what it owned is closed.
  [[nodiscard]] bool put(Order order) { return orders_->put(std::move(order)); }

 private:
  LoopThread() = default;

  template <class Make>
  void run(Make& make, int stop) {
    loop_->read_clock();  // it was read when the loop was made
    auto body = make(*loop_, *orders_);
    const auto orders = loop_->watch(orders_->descriptor(), Interest::kRead, [&](Readiness) { body.take_orders(); });
    const auto stopped = loop_->watch(stop, Interest::kRead, [&](Readiness) {
      body.take_orders();
      loop_->stop();
    });
    MONARCH_ASSERT(orders.ok() && stopped.ok());  // epoll refuses only what the kernel has no memory for
    body.run();
  }

  std::unique_ptr<EventLoop> loop_;  // the thread's while that runs
  std::unique_ptr<Inbox<Order>> orders_;
  std::unique_ptr<JoiningThread> thread_;
};

}  // namespace monarch
