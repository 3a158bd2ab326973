#pragma once

// The simulated machine room's time: Scheduler runs tasks in virtual time, Clock is one host's view of that time, Life
// is a process that can be frozen and killed, Alarm its one timer. What reaches a frozen process waits for its thaw, in
// order, messages before timers, as an event loop finds them; what reaches a dead one is lost.
//
// Thread: one simulation, one thread. Lifetime: a Scheduler outlives all that is scheduled on it.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "transport/base/time.h"

namespace monarch::sim {

using Task = std::function<void()>;

constexpr Duration kHop = Duration::microseconds(50);    // of a message from one process of a host to another
constexpr Duration kSoon = Duration::microseconds(200);  // before what the kernel does at once is done
constexpr std::int64_t kClocksDiffer = 1'000;            // by no more than one part in so many

class Scheduler {
 public:
  Instant now() const { return now_; }
  void at(Instant when, Task task) {
    if (when == Instant::never()) return;
    heap_.push_back({std::max(when, now_), ++last_, std::move(task)});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  void after(Duration wait, Task task) { at(now_ + wait, std::move(task)); }
  bool idle() const { return heap_.empty(); }
  Instant next() const { return heap_.empty() ? Instant::never() : heap_.front().when; }
  void run_next() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Entry entry = std::move(heap_.back());
    heap_.pop_back();
    now_ = entry.when;
    ++steps_;
    entry.task();
  }
  std::uint64_t steps() const { return steps_; }

 private:
  struct Entry {
    Instant when;
    std::uint64_t order = 0;
    Task task;
  };
  static bool later(const Entry& a, const Entry& b) { return std::pair(a.when, a.order) > std::pair(b.when, b.order); }

  Instant now_;
  std::vector<Entry> heap_;
  std::uint64_t last_ = 0;
  std::uint64_t steps_ = 0;
};

// CLOCK_BOOTTIME of a host: it goes on through a freeze, and never backwards.
class Clock {
 public:
  Clock() = default;
  Clock(Duration offset, std::int64_t parts_per_million) : offset_(offset), ppm_(parts_per_million) {}

  Instant local(Instant real) const {
    const std::int64_t t = real.since_boot().count_nanoseconds();
    return Instant::since_boot(offset_ + Duration::nanoseconds(t + t / kMillion * ppm_));
  }
  // The first moment at which local() has reached it.
  Instant real(Instant local_time) const {
    if (local_time == Instant::never()) return local_time;
    const std::int64_t l = (local_time.since_boot() - offset_).count_nanoseconds();
    if (l <= 0) return {};
    std::int64_t t = l - l / kMillion * ppm_ - kSlack;
    t = std::max<std::int64_t>(t, 0);
    while (local(Instant::since_boot(Duration::nanoseconds(t))) < local_time) {
      t += std::max<std::int64_t>(
          (local_time - local(Instant::since_boot(Duration::nanoseconds(t)))).count_nanoseconds(), 1);
    }
    return Instant::since_boot(Duration::nanoseconds(t));
  }

 private:
  static constexpr std::int64_t kMillion = 1'000'000;
  static constexpr std::int64_t kSlack = 1'000'000;
  Duration offset_;
  std::int64_t ppm_ = 0;
};

// WARNING: what waits for one that is frozen holds it. Whoever has made a life ends it with itself, or a world that is
// thrown away in the midst of things would leave both.
class Life {
 public:
  bool alive() const { return alive_; }
  bool frozen() const { return frozen_ > 0; }
  // What is sent now is taken now.
  bool listens() const { return alive_ && !frozen() && messages_.empty(); }
  template <class Act>
  void message(Act&& act) {
    take(messages_, std::forward<Act>(act));
  }
  template <class Act>
  void timer(Act&& act) {
    take(timers_, std::forward<Act>(act));
  }
  std::size_t waiting() const { return messages_.size(); }

  void freeze() { ++frozen_; }
  void thaw() {
    if (--frozen_ > 0) return;
    drain(messages_);
    drain(timers_);
  }
  void end() {
    alive_ = false;
    messages_.clear();
    timers_.clear();
  }

 private:
  template <class Act>
  void take(std::deque<Task>& queue, Act&& act) {
    if (!alive_) return;
    if (frozen() || !queue.empty()) {
      queue.emplace_back(std::forward<Act>(act));
    } else {
      act();
    }
  }
  void drain(std::deque<Task>& queue) {
    while (alive_ && !frozen() && !queue.empty()) {
      const Task task = std::move(queue.front());
      queue.pop_front();
      task();
    }
  }

  bool alive_ = true;
  int frozen_ = 0;
  std::deque<Task> messages_;
  std::deque<Task> timers_;
};

using LifePtr = std::shared_ptr<Life>;

template <class Act>
void send_after(Scheduler& scheduler, Duration wait, const LifePtr& to, Act act) {
  scheduler.after(wait, [to, act = std::move(act)]() mutable { to->message(std::move(act)); });
}

// Fires once, when its process runs and the host's clock has reached what was set last. One that is put off again and
// again costs one task: that looks, when it comes, for how long it has to wait.
class Alarm {
 public:
  Alarm(Scheduler& scheduler, const Clock& clock, LifePtr life, Task task)
      : scheduler_(scheduler), clock_(clock), shared_(std::make_shared<Shared>()) {
    shared_->life = std::move(life);
    shared_->task = std::move(task);
  }
  void set(Instant due) {
    if (due == shared_->due) return;
    shared_->due = due;
    ++shared_->version;
    shared_->real_due = clock_.real(due);
    look_at(scheduler_, shared_);
  }

 private:
  struct Shared {
    LifePtr life;
    Instant due = Instant::never();
    Instant real_due = Instant::never();
    Instant looks_at = Instant::never();  // the first task that is on its way
    std::uint64_t version = 0;
    Task task;
  };
  using SharedPtr = std::shared_ptr<Shared>;

  static void look_at(Scheduler& scheduler, const SharedPtr& shared) {
    const Instant when = std::max(shared->real_due, scheduler.now());
    if (shared->due == Instant::never() || shared->looks_at <= when) return;
    shared->looks_at = when;
    scheduler.at(when, [&scheduler, shared] { look(scheduler, shared); });
  }
  static void look(Scheduler& scheduler, const SharedPtr& shared) {
    if (shared->looks_at != scheduler.now()) return;  // another one came first
    shared->looks_at = Instant::never();
    if (shared->due == Instant::never()) return;
    if (shared->real_due > scheduler.now()) return look_at(scheduler, shared);
    shared->life->timer([shared, version = shared->version] {
      if (shared->version != version) return;
      shared->due = Instant::never();
      ++shared->version;
      shared->task();
    });
  }

  Scheduler& scheduler_;
  const Clock& clock_;
  SharedPtr shared_;  // with the tasks that are on their way
};

}  // namespace monarch::sim
