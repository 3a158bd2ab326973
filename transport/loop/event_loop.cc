#include "transport/loop/event_loop.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr int kEventsPerTurn = 64;
constexpr WatchId kAlarm = 0;              // watches of others start at 1
constexpr WatchId kOfEdges = 1ULL << 63U;  // in the ids of those that are noted

std::uint32_t epoll_events(Interest interest) {
  switch (interest) {
    case Interest::kRead: return EPOLLIN | EPOLLRDHUP;
    case Interest::kWrite: return EPOLLOUT;
    case Interest::kReadWrite: return EPOLLIN | EPOLLRDHUP | EPOLLOUT;
    case Interest::kNone: return 0;
  }
  return 0;
}

}  // namespace

Result<std::unique_ptr<EventLoop>> EventLoop::create() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return errno_error("epoll_create1", errno);
  UniqueFd alarm(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!alarm.valid()) return errno_error("timerfd_create", errno);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kAlarm;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, alarm.get(), &event) != 0) {
    return errno_error("watching the timerfd", errno);
  }
  return std::unique_ptr<EventLoop>(new EventLoop(std::move(epoll), std::move(alarm)));
}

EventLoop::EventLoop(UniqueFd epoll, UniqueFd alarm)
    : epoll_(std::move(epoll)), alarm_(std::move(alarm)), now_(boot_now()) {}

Result<WatchId> EventLoop::watch(int fd, Interest interest, std::function<void(Readiness)> handler) {
  return add(next_id_++, fd, epoll_events(interest), std::move(handler));
}

Result<WatchId> EventLoop::watch_edges(int fd, std::function<void()> note) {
  return add(next_id_++ | kOfEdges, fd, EPOLLIN | EPOLLET, [note = std::move(note)](Readiness) { note(); });
}

Result<WatchId> EventLoop::add(WatchId id, int fd, std::uint32_t events, std::function<void(Readiness)> handler) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return errno_error(text("watching descriptor ", fd), errno);
  }
  watches_.emplace(
      id, Watch{.fd = fd, .handler = std::make_shared<const std::function<void(Readiness)>>(std::move(handler))});
  return id;
}

void EventLoop::change(WatchId id, Interest interest) {
  const auto found = watches_.find(id);
  MONARCH_ASSERT(found != watches_.end());
  epoll_event event{};
  event.events = epoll_events(interest);
  event.data.u64 = id;
  MONARCH_ASSERT(::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, found->second.fd, &event) == 0);
}

void EventLoop::forget(WatchId id) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  // A descriptor that the caller closed too early is gone from the set already; the assertion finds that bug.
  MONARCH_ASSERT(::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.fd, nullptr) == 0);
  watches_.erase(found);
}

TimerId EventLoop::at(Instant when, std::function<void()> handler) {
  const TimerId id = next_id_++;
  timers_.emplace(std::pair{when, id}, std::move(handler));
  timer_due_.emplace(id, when);
  if (when < armed_for_) arm();
  return id;
}

void EventLoop::cancel(TimerId id) {
  const auto found = timer_due_.find(id);
  if (found == timer_due_.end()) return;
  timers_.erase({found->second, id});
  timer_due_.erase(found);
}

void EventLoop::defer(std::function<void()> call) { deferred_.push_back(std::move(call)); }

Instant EventLoop::next_due() const {
  if (!deferred_.empty()) return now_;
  return timers_.empty() ? Instant::never() : timers_.begin()->first.first;
}

int EventLoop::wait_milliseconds(Instant now, Instant due) {
  if (due == Instant::never()) return -1;
  if (due <= now) return 0;
  const std::int64_t milliseconds = ((due - now).count_nanoseconds() + 999'999) / 1'000'000;
  return static_cast<int>(std::min<std::int64_t>(milliseconds, std::numeric_limits<int>::max()));
}

void EventLoop::read_clock() { now_ = boot_now(); }

void EventLoop::turn() {
  (void)collect(0);  // what a turn does not take is there in the next
  finish_turn();
}

void EventLoop::run_once() {
  (void)collect(wait_milliseconds(boot_now(), next_due()));
  finish_turn();
}

void EventLoop::run() {
  while (!stopped_) run_once();
}

void EventLoop::finish_turn() {
  run_ready();
  run_timers();
  run_deferred();
  arm();
}

// A cancelled timer leaves the alarm too early, which costs one empty turn.
void EventLoop::arm() {
  const Instant due = timers_.empty() ? Instant::never() : timers_.begin()->first.first;
  if (due == armed_for_) return;
  armed_for_ = due;
  itimerspec spec{};
  if (due != Instant::never()) {
    // Zero would disarm it; an instant before the boot is as due as one just after it.
    const std::int64_t nanoseconds = std::max<std::int64_t>(due.since_boot().count_nanoseconds(), 1);
    spec.it_value.tv_sec = nanoseconds / 1'000'000'000;
    spec.it_value.tv_nsec = nanoseconds % 1'000'000'000;
  }
  MONARCH_ASSERT(::timerfd_settime(alarm_.get(), TFD_TIMER_ABSTIME, &spec, nullptr) == 0);
}

EventLoop::Collected EventLoop::collect(int timeout_milliseconds) {
  std::array<epoll_event, kEventsPerTurn> events{};
  const int count = ::epoll_wait(epoll_.get(), events.data(), kEventsPerTurn, timeout_milliseconds);
  MONARCH_ASSERT(count >= 0 || errno == EINTR);
  now_ = boot_now();
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const WatchId id = event.data.u64;  // epoll_event is packed: no reference may be bound to its fields
    const Readiness readiness{.readable = (event.events & EPOLLIN) != 0,
                              .writable = (event.events & EPOLLOUT) != 0,
                              .hangup = (event.events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) != 0};
    if ((id & kOfEdges) == 0) {
      ready_.push_back({id, readiness});
    } else if (const auto found = watches_.find(id); found != watches_.end()) {
      (*found->second.handler)(readiness);
    }
  }
  if (count <= 0) return Collected::kNothing;
  return count < kEventsPerTurn ? Collected::kAll : Collected::kPart;
}

void EventLoop::run_ready() {
  std::vector<Ready> ready = std::move(ready_);
  ready_.clear();
  for (const Ready& one : ready) {
    if (one.id == kAlarm) {
      std::uint64_t expirations = 0;
      (void)!::read(alarm_.get(), &expirations, sizeof expirations);  // EAGAIN: armed anew since
      armed_for_ = Instant::never();
      continue;
    }
    const auto found = watches_.find(one.id);
    if (found == watches_.end()) continue;  // forgotten by an earlier handler of this turn
    const Handler handler = found->second.handler;
    (*handler)(one.readiness);
    step();
  }
  ready.clear();
  if (ready_.empty()) ready_ = std::move(ready);  // its memory, for the next turn
}

void EventLoop::run_timers() {
  std::vector<std::pair<Instant, TimerId>> due;
  for (auto timer = timers_.begin(); timer != timers_.end() && timer->first.first <= now_; ++timer) {
    due.push_back(timer->first);
  }
  for (const auto& key : due) {
    auto node = timers_.extract(key);
    if (node.empty()) continue;  // cancelled by an earlier handler of this turn
    timer_due_.erase(key.second);
    node.mapped()();
    step();
  }
}

void EventLoop::run_deferred() {
  std::vector<std::function<void()>> calls;
  calls.swap(deferred_);
  for (const auto& call : calls) {
    call();
    step();
  }
}

}  // namespace monarch
