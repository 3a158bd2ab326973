#include "worker/rank/door_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "transport/base/clock.h"

namespace monarch {

namespace {

constexpr Duration kFreeFor = Duration::milliseconds(1);  // then the door's own thread reads

void raise_event(int fd) {
  const std::uint64_t one = 1;
  (void)!::write(fd, &one, sizeof one);  // it is read each time that it is readable
}

// Of an eventfd or a timerfd. False: nothing was.
bool clear_event(int fd) {
  std::uint64_t times = 0;
  return ::read(fd, &times, sizeof times) > 0;
}

int milliseconds_until(Instant until) {
  if (until == Instant::never()) return -1;
  constexpr std::int64_t kLongest = 1'000'000;
  return static_cast<int>(std::clamp((until - boot_now()).count_milliseconds() + 1, std::int64_t{0}, kLongest));
}

}  // namespace

Result<std::unique_ptr<DoorReader>> DoorReader::make(Handlers handlers) {
  std::unique_ptr<DoorReader> made(new DoorReader(std::move(handlers)));
  for (UniqueFd* const event : {&made->wake_, &made->nudge_}) {
    *event = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event->valid()) return errno_error("eventfd", errno);
  }
  made->alarm_ = UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!made->alarm_.valid()) return errno_error("timerfd_create", errno);
  return made;
}

bool DoorReader::is_whole() const {
  return std::ranges::all_of(std::initializer_list<int>{wake_.get(), nudge_.get(), alarm_.get()},
                             [](int fd) { return ::fcntl(fd, F_GETFD) >= 0; });
}

void DoorReader::wait(const void* key, const std::function<bool()>& done, Instant until) {
  Waiter self{.key = key, .thread = std::this_thread::get_id()};
  Lock lock(mutex_);
  waiters_.push_back(&self);
  for (;;) {
    self.woken = false;
    lock.unlock();
    const bool enough = done() || boot_now() >= until;
    lock.lock();
    if (enough) break;
    if (self.woken) continue;
    if (may_take()) take(self);
    if (reader_ == &self) {
      read(lock, self, until);
    } else {
      sleep(lock, self, until);
    }
  }
  leave(self);
}

void DoorReader::take(Waiter& waiter) {
  own_ = false;
  reader_ = &waiter;
  if (alarmed_) set_alarm(false);
}

void DoorReader::read(Lock& lock, Waiter& waiter, Instant until) {
  const Connection connection = connection_;  // it may have ended since this thread had the role
  if (connection != nullptr && !ended_) {
    lock.unlock();
    const auto word = connection->wait_for_word(until, nudge_.get());
    if (word.ok() && !*word) (void)clear_event(nudge_.get());
    lock.lock();
    if (word.ok() && *word) handle(lock, connection, &waiter);
    if (!word.ok() && connection_ == connection) end_with(word.error());
    if (connection_ == connection && !ended_) return;
  }
  reader_ = nullptr;
  idle_.notify_all();
}

void DoorReader::sleep(Lock& lock, Waiter& waiter, Instant until) {
  const auto ready = [&] { return waiter.woken || may_take(); };
  if (until == Instant::never()) return waiter.changed.wait(lock, ready);
  (void)waiter.changed.wait_for(lock, std::chrono::nanoseconds((until - boot_now()).count_nanoseconds()), ready);
}

void DoorReader::leave(Waiter& waiter) {
  std::erase(waiters_, &waiter);
  if (reader_ == &waiter) reader_ = nullptr;
  if (reader_ == nullptr && !own_) hand_on();
  idle_.notify_all();
}

DoorReader::Waiter* DoorReader::next_waiter() const {
  const auto found = std::ranges::find_if(waiters_, [](const Waiter* waiter) { return !waiter->woken; });
  return found == waiters_.end() ? nullptr : *found;
}

void DoorReader::hand_on() {
  if (connection_ == nullptr || ended_) return;
  if (Waiter* const next = next_waiter()) return next->changed.notify_one();
  if (!waiters_.empty()) return;  // each is about to look, and reads or leaves then
  if (is_wanted()) return summon_own();
  if (!alarmed_) set_alarm(true);
}

void DoorReader::wake(const void* key) {
  const std::lock_guard lock(mutex_);
  for (Waiter* const waiter : waiters_) {
    if (waiter->key != key || std::exchange(waiter->woken, true)) continue;
    if (waiter != reader_) {
      waiter->changed.notify_one();
    } else if (waiter->thread != std::this_thread::get_id()) {
      raise_event(nudge_.get());
    }
  }
}

void DoorReader::attend() {
  const std::lock_guard lock(mutex_);
  if (connection_ != nullptr && reader_ == nullptr && !own_) summon_own();
}

void DoorReader::summon_own() {
  own_ = true;
  if (alarmed_) set_alarm(false);
  raise_event(wake_.get());
}

bool DoorReader::later(std::function<void()> run) {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  later_.push_back(std::move(run));
  raise_event(wake_.get());
  return true;
}

void DoorReader::look_soon() const { raise_event(wake_.get()); }

void DoorReader::handle(Lock& lock, const Connection& connection, const Waiter* reader) {
  idle_.wait(lock, [this] { return !is_handled(); });
  const bool may_read = reader == nullptr ? own_ : reader_ == reader;
  if (!may_read || connection_ != connection || ended_) return;
  handler_ = std::this_thread::get_id();
  lock.unlock();
  auto heard = connection->try_to_hear();
  if (heard.ok() && *heard) handlers_.heard(connection, **heard);
  lock.lock();
  handler_ = std::thread::id();
  idle_.notify_all();
  if (!heard.ok()) end_with(std::move(heard).error());
}

void DoorReader::end_with(Error why) {
  if (!ended_) ended_ = std::move(why);
  raise_event(wake_.get());
}

void DoorReader::begin(Connection connection) {
  const Lock lock(mutex_);
  connection_ = std::move(connection);
  ended_.reset();
  Waiter* const next = next_waiter();
  own_ = next == nullptr;
  if (next != nullptr) next->changed.notify_one();
}

void DoorReader::run_later(Lock& lock) {
  while (!later_.empty()) {
    const std::vector<std::function<void()>> now = std::exchange(later_, {});
    lock.unlock();
    for (const auto& run : now) run();
    lock.lock();
  }
}

Result<DoorReader::Served> DoorReader::serve(Instant until, int stop) {
  Lock lock(mutex_);
  run_later(lock);
  if (ended_) return Error(*ended_);
  if (reader_ == nullptr && waiters_.empty()) own_ = true;
  if (!own_) {
    lock.unlock();
    return stand_by(until, stop);
  }
  const Connection connection = connection_;
  lock.unlock();
  MONARCH_ASSIGN(const bool word, connection->wait_for_word(until, wake_.get()));
  if (!word) return clear_event(wake_.get()) ? Served::kWoken : Served::kNothing;
  lock.lock();
  handle(lock, connection, nullptr);
  if (own_ && next_waiter() != nullptr && may_take()) {
    own_ = false;
    hand_on();
  }
  return Served::kMessage;
}

Result<DoorReader::Served> DoorReader::stand_by(Instant until, int stop) {
  pollfd waiting[] = {{stop, POLLIN, 0}, {wake_.get(), POLLIN, 0}, {alarm_.get(), POLLIN, 0}};
  if (::poll(waiting, 3, milliseconds_until(until)) < 0 && errno != EINTR) return errno_error("standing by", errno);
  if (waiting[0].revents != 0) return Error{ErrorCode::kGone, "this process is about to end"};
  if (waiting[2].revents != 0) {
    const Lock lock(mutex_);
    alarmed_ = alarmed_ && !clear_event(alarm_.get());
  }
  return clear_event(wake_.get()) ? Served::kWoken : Served::kNothing;
}

void DoorReader::alone(const std::function<void()>& run) {
  Lock lock(mutex_);
  idle_.wait(lock, [this] { return !is_handled(); });
  handler_ = std::this_thread::get_id();
  lock.unlock();
  run();
  lock.lock();
  handler_ = std::thread::id();
  idle_.notify_all();
}

void DoorReader::end() {
  Lock lock(mutex_);
  const Connection gone = std::exchange(connection_, nullptr);
  own_ = false;
  if (reader_ != nullptr) raise_event(nudge_.get());
  idle_.wait(lock, [this] { return !is_handled() && reader_ == nullptr; });
  run_later(lock);
}

void DoorReader::close() {
  Lock lock(mutex_);
  run_later(lock);
  closed_ = true;
}

void DoorReader::set_alarm(bool on) {
  itimerspec in{};
  if (on) in.it_value.tv_nsec = kFreeFor.count_nanoseconds();
  (void)::timerfd_settime(alarm_.get(), 0, &in, nullptr);  // cannot fail: timerfd_settime(2)
  alarmed_ = on;
}

}  // namespace monarch
