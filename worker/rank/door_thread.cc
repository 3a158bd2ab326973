#include "worker/rank/door_thread.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "worker/rank/rank_words.h"

namespace monarch {

namespace {

constexpr Duration kWelcomePatience = Duration::seconds(5);
constexpr Duration kShortestPatience = Duration::milliseconds(250);  // where somebody looks meanwhile
constexpr Duration kFirstPause = Duration::milliseconds(2);
constexpr Duration kLongestPause = Duration::milliseconds(250);
constexpr Duration kNamedEvery = Duration::seconds(30);

// True: `stop` is readable.
bool pause(int stop, Duration time) {
  pollfd waiting{stop, POLLIN, 0};
  return ::poll(&waiting, 1, static_cast<int>(time.count_milliseconds())) > 0;
}

}  // namespace

Result<std::unique_ptr<DoorThread>> DoorThread::start(std::string path, PostHello hello, Handlers handlers) {
  std::unique_ptr<DoorThread> made(new DoorThread(std::move(path), std::move(hello), std::move(handlers)));
  made->wake_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->wake_.valid()) return errno_error("eventfd", errno);
  MONARCH_ASSIGN(made->thread_, JoiningThread::start([self = made.get()](int stop) { self->run(stop); }));
  return made;
}

void DoorThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.reset();
}

DoorThread::Connection DoorThread::wait(Instant until) {
  std::unique_lock lock(mutex_);
  const auto there = [this] { return now_ != nullptr || ending_; };
  if (is_here()) return ending_ ? nullptr : now_;
  if (until == Instant::never()) {
    changed_.wait(lock, there);
  } else {
    (void)changed_.wait_for(lock, std::chrono::nanoseconds((until - boot_now()).count_nanoseconds()), there);
  }
  return ending_ ? nullptr : now_;
}

void DoorThread::wake() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);  // it is read each time that it is readable
}

void DoorThread::set(Connection connection) {
  {
    const std::lock_guard lock(mutex_);
    now_ = std::move(connection);
  }
  changed_.notify_all();
}

void DoorThread::run(int stop) {
  handling_ = std::this_thread::get_id();
  const auto memory = std::make_shared<MemoryPool>();
  Duration between = kFirstPause;
  Instant named = boot_now() + kNamedEvery;
  while (!pause(stop, Duration::zero())) {
    const Duration until_look = look() - boot_now();
    auto came =
        DoorClient::come(path_, hello_, std::clamp(until_look, kShortestPatience, kWelcomePatience), memory, stop);
    if (!came) {
      if (pause(stop, between)) return;
      between = std::min(between * 2, kLongestPause);
      if (boot_now() < named) continue;
      say(text("no connection to the post of this host yet: ", came.error().message));
      named = boot_now() + kNamedEvery;
      continue;
    }
    const Connection connection = std::move(came).value();
    handlers_.came(connection);
    set(connection);
    const Error why = hear_to_the_end(connection);
    set(nullptr);
    connection->close();  // who sends by it still, hears of that
    handlers_.ended(connection, why.message);
    between = kFirstPause;
    named = boot_now() + kNamedEvery;
  }
}

Error DoorThread::hear_to_the_end(const Connection& connection) const {
  Instant until = look();
  for (;;) {
    auto heard = connection->hear_until(until, wake_.get());
    if (heard.ok()) {
      handlers_.heard(connection, *heard);
      continue;
    }
    if (heard.error().code != ErrorCode::kTimeout) return std::move(heard).error();
    std::uint64_t times = 0;
    (void)!::read(wake_.get(), &times, sizeof times);
    until = look();
  }
}

}  // namespace monarch
