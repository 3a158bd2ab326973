#include "transport/zmq/zmq_loop.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "transport/base/clock.h"

namespace monarch {

namespace {

constexpr int kMessagesPerTurn = 64;  // of one socket; the rest waits for the next turn, which then does not wait

}  // namespace

ZmqWatchId ZmqLoop::watch(ZmqSocket& socket, std::function<bool()> take_one, Pace pace) {
  const ZmqWatchId id = next_id_++;
  Watch& watch = *watches_.emplace_back(std::make_unique<Watch>(
      Watch{.id = id, .socket = &socket, .take_one = std::move(take_one), .writable = {}, .pace = pace}));
  ++unheard_;
  hear_edges(watch);
  socket.when_used([this, &watch] { ask_later(watch); });
  socket.signalled();  // it may hold messages already
  return id;
}

void ZmqLoop::hear_edges(Watch& watch) {
  const Result<int> descriptor = watch.socket->descriptor();
  if (!descriptor.ok()) return;
  const auto edges = loop_.watch_edges(*descriptor, [socket = watch.socket] { socket->signalled(); });
  if (!edges.ok()) return;
  watch.edges = *edges;
  --unheard_;
}

ZmqLoop::Watch* ZmqLoop::find(ZmqWatchId id) {
  const auto found = std::lower_bound(watches_.begin(), watches_.end(), id,
                                      [](const auto& watch, ZmqWatchId wanted) { return watch->id < wanted; });
  return found != watches_.end() && (*found)->id == id ? found->get() : nullptr;
}

void ZmqLoop::when_writable(ZmqWatchId id, std::function<void()> handler) {
  Watch* const watch = find(id);
  MONARCH_ASSERT(watch != nullptr && watch->socket != nullptr);
  watch->writable = std::move(handler);
  ask_later(*watch);
}

void ZmqLoop::set_pace(ZmqWatchId id, Pace pace) {
  Watch* const watch = find(id);
  MONARCH_ASSERT(watch != nullptr);
  watch->pace = pace;
}

// The handler itself is freed at the next turn: it may be the one that is running.
void ZmqLoop::forget(ZmqWatchId id) {
  Watch* const watch = find(id);
  if (watch == nullptr || watch->socket == nullptr) return;
  watch->socket->when_used(nullptr);
  watch->socket = nullptr;
  any_forgotten_ = true;
  if (watch->edges != 0) {
    loop_.forget(watch->edges);
  } else {
    --unheard_;
  }
}

void ZmqLoop::drop_forgotten() {
  if (!std::exchange(any_forgotten_, false)) return;
  std::erase_if(to_ask_, [](const Watch* watch) { return watch->socket == nullptr; });
  std::erase_if(watches_, [](const auto& watch) { return watch->socket == nullptr; });
}

void ZmqLoop::ask_later(Watch& watch) {
  if (!std::exchange(watch.to_ask, true)) to_ask_.push_back(&watch);
}

void ZmqLoop::run() {
  while (!loop_.stopped()) turn(Instant::never());
}

void ZmqLoop::turn(Instant deadline) {
  drop_forgotten();
  const Instant begin = boot_now();
  ask(begin);
  collect(begin, deadline);
  unread_.look(loop_.now());
  ask(loop_.now());
  if (loop_.now() >= seldom_due_) seldom_due_ = loop_.now() + kSeldomEvery;
  std::sort(ready_.begin(), ready_.end(), [](const Watch* a, const Watch* b) { return a->id < b->id; });
  // A handler may add watches; they wait for the next turn.
  for (Watch* const watch : std::exchange(ready_, {})) serve(*watch);
  loop_.finish_turn();
}

// All but those that are looked at seldom, and not yet again: they stay in the list.
void ZmqLoop::ask(Instant now) {
  std::erase_if(to_ask_, [&](Watch* watch) {
    const bool needed = watch->socket->may_be_readable() || watch->writable;
    if (needed && watch->pace == Pace::kSeldom && now < seldom_due_) return false;
    watch->to_ask = false;
    if (!needed) return true;
    const ZmqSocket::Events events = watch->socket->events();
    const ZmqSocket::Events wanted{.readable = events.readable, .writable = events.writable && watch->writable};
    if (!wanted.readable && !wanted.writable) return true;
    if (!watch->now.readable && !watch->now.writable) ready_.push_back(watch);
    watch->now = wanted;
    return true;
  });
}

// Waits while none of them has anything.
void ZmqLoop::collect(Instant begin, Instant deadline) {
  Instant until = std::min({deadline, loop_.next_due(), unread_.next_due()});
  if (!ready_.empty()) until = begin;
  if (!to_ask_.empty()) until = std::min(until, seldom_due_);
  if (unheard_ > 0) until = std::min(until, begin + kSeldomEvery);
  const auto collected = wait(EventLoop::wait_milliseconds(begin, until));
  // Edges may be missing: the rare turn with so much to do asks all.
  const bool all = collected == EventLoop::Collected::kPart;
  if (!all && unheard_ == 0) return;
  for (const auto& watch : watches_) {
    if (watch->edges == 0) hear_edges(*watch);
    if (all || watch->edges == 0) watch->socket->signalled();
  }
}

EventLoop::Collected ZmqLoop::wait(int milliseconds) {
  if (!may_look_ || milliseconds == 0) return loop_.collect(milliseconds);
  const Instant begin = boot_now();
  if (!looks_now(begin)) {
    const auto collected = loop_.collect(milliseconds);
    looks_.slept(loop_.now() - begin);
    return collected;
  }
  auto collected = loop_.collect(0);
  while (collected == EventLoop::Collected::kNothing && loop_.now() - begin < Looks::kAtMost) {
    (void)::sched_yield();  // cannot fail on Linux
    collected = loop_.collect(0);
  }
  const bool in_vain = collected == EventLoop::Collected::kNothing;
  looks_.looked(loop_.now(), loop_.now() - begin, in_vain);
  return in_vain ? loop_.collect(milliseconds) : collected;
}

bool ZmqLoop::looks_now(Instant now) {
  const bool pay = looks_.pay(now);
  if (pay && !looks_pay_) lets_look_ = may_look_();
  looks_pay_ = pay;
  return pay && lets_look_;
}

void ZmqLoop::serve(Watch& watch) {
  const ZmqSocket::Events now = std::exchange(watch.now, {});
  for (int i = 0; now.readable && i < kMessagesPerTurn && watch.socket != nullptr; ++i) {
    if (!watch.take_one()) break;
    loop_.step();
  }
  if (watch.socket == nullptr) return;
  if (watch.socket->may_be_readable()) ask_later(watch);
  if (!now.writable) return;
  const auto handler = std::exchange(watch.writable, nullptr);
  if (handler) handler();
}

}  // namespace monarch
