#include "worker/rank/door_thread.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "worker/rank/rank_words.h"

namespace monarch {

namespace {

constexpr Duration kWelcomePatience = Duration::seconds(5);
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
    auto came = DoorClient::come(path_, hello_, kWelcomePatience, memory, stop);
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

Error DoorThread::hear_to_the_end(const Connection& connection) {
  for (;;) {
    auto heard = connection->hear();
    if (!heard) return std::move(heard).error();
    handlers_.heard(connection, *heard);
  }
}

}  // namespace monarch
