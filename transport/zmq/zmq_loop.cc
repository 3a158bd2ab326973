#include "transport/zmq/zmq_loop.h"

#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/base/clock.h"

namespace monarch {

namespace {

constexpr int kMessagesPerTurn = 64;  // of one socket; the rest waits for the next turn, which then does not wait

}  // namespace

ZmqWatchId ZmqLoop::watch(ZmqSocket& socket, std::function<bool()> take_one, Pace pace) {
  const ZmqWatchId id = next_id_++;
  watches_.push_back(std::make_unique<Watch>(Watch{id, socket.native(), std::move(take_one), {}, pace}));
  return id;
}

ZmqLoop::Watch& ZmqLoop::watch_of(ZmqWatchId id) {
  const auto found = std::find_if(watches_.begin(), watches_.end(), [id](const auto& w) { return w->id == id; });
  MONARCH_ASSERT(found != watches_.end());
  return **found;
}

void ZmqLoop::when_writable(ZmqWatchId id, std::function<void()> handler) {
  watch_of(id).writable = std::move(handler);
}

void ZmqLoop::set_pace(ZmqWatchId id, Pace pace) { watch_of(id).pace = pace; }

// The handler itself is freed at the end of the turn: it may be the one that is running.
void ZmqLoop::forget(ZmqWatchId id) {
  const auto found = std::find_if(watches_.begin(), watches_.end(), [id](const auto& w) { return w->id == id; });
  if (found != watches_.end()) (*found)->native = nullptr;
}

void ZmqLoop::run() {
  while (!loop_.stopped()) turn(Instant::never());
}

void ZmqLoop::turn(Instant deadline) {
  std::erase_if(watches_, [](const auto& watch) { return watch->native == nullptr; });
  const Instant begin = boot_now();
  const bool all = begin >= seldom_due_;
  std::vector<zmq_pollitem_t> items;
  std::vector<Watch*> looked_at;
  items.reserve(watches_.size() + 1);
  looked_at.reserve(watches_.size());
  for (const auto& watch : watches_) {
    if (!all && watch->pace == Pace::kSeldom) continue;
    looked_at.push_back(watch.get());
    const int events = watch->writable ? ZMQ_POLLIN | ZMQ_POLLOUT : ZMQ_POLLIN;
    items.push_back({watch->native, 0, static_cast<short>(events), 0});
  }
  items.push_back({nullptr, loop_.descriptor(), ZMQ_POLLIN, 0});
  // WARNING: the descriptor of a zmq socket (ZMQ_FD) is edge-triggered and may be consumed by a send; zmq_poll asks
  // ZMQ_EVENTS each time, so nothing is missed.
  const bool left_out = looked_at.size() < watches_.size();
  const Instant until =
      std::min({deadline, loop_.next_due(), unread_.next_due(), left_out ? seldom_due_ : Instant::never()});
  const long wait = EventLoop::wait_milliseconds(begin, until);
  const int ready = zmq_poll(items.data(), static_cast<int>(items.size()), wait);
  MONARCH_ASSERT(ready >= 0 || errno == EINTR);
  loop_.read_clock();
  if (all) seldom_due_ = loop_.now() + kSeldomEvery;
  unread_.look(loop_.now());
  if (ready > 0) {
    // A handler may add watches; they are behind these and wait for the next turn.
    for (std::size_t i = 0; i + 1 < items.size(); ++i) {
      serve(*looked_at[i], (items[i].revents & ZMQ_POLLIN) != 0, (items[i].revents & ZMQ_POLLOUT) != 0);
    }
  }
  loop_.turn();
}

void ZmqLoop::serve(Watch& watch, bool readable, bool writable) {
  for (int i = 0; readable && i < kMessagesPerTurn && watch.native != nullptr; ++i) {
    if (!watch.take_one()) break;
    loop_.step();
  }
  if (!writable || watch.native == nullptr) return;
  const auto handler = std::exchange(watch.writable, nullptr);
  if (handler) handler();
}

}  // namespace monarch
