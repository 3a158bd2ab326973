#include "supervisor/viewers/idle_timer.h"

#include <utility>

namespace monarch {

IdleTimer::IdleTimer(EventLoop& loop, Duration limit, Handlers handlers)
    : loop_(loop), limit_(limit), handlers_(std::move(handlers)), watch_(limit) {}

IdleTimer::~IdleTimer() { loop_.cancel(timer_); }

void IdleTimer::begin() {
  watch_.begin(loop_.now());
  arm();
}

void IdleTimer::viewers(std::size_t attached) {
  watch_.viewers(attached, loop_.now());
  arm();
}

// A timer that fires too early looks again: a job that writes a lot sets none for every line.
void IdleTimer::used() {
  watch_.used(loop_.now());
  if (timer_ == 0) arm();
}

void IdleTimer::arm() {
  loop_.cancel(std::exchange(timer_, 0));
  const Instant due = watch_.next_deadline();
  if (due == Instant::never()) return;
  timer_ = loop_.at(due, [this] {
    timer_ = 0;
    turn();
  });
}

void IdleTimer::turn() {
  switch (watch_.turn(loop_.now())) {
    case IdleWatch::Says::kNothing: break;
    case IdleWatch::Says::kWarn: handlers_.on_warning(warning_before(limit_)); break;
    case IdleWatch::Says::kStop: return handlers_.on_idle();
  }
  arm();
}

}  // namespace monarch
