#include "worker/rank/door_thread.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
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
constexpr Duration kOwnLook = Duration::seconds(1);      // at its descriptors
constexpr Duration kWithoutRoom = Duration::seconds(5);  // for a descriptor

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

// True: `stop` is readable, or is no descriptor any more.
bool pause(int stop, Duration time) {
  pollfd waiting{stop, POLLIN, 0};
  return ::poll(&waiting, 1, static_cast<int>(time.count_milliseconds())) > 0;
}

}  // namespace

Result<std::unique_ptr<DoorThread>> DoorThread::start(std::string path, PostHello hello, Handlers handlers,
                                                      std::shared_ptr<DoorMemory> memory) {
  std::unique_ptr<DoorThread> made(
      new DoorThread(std::move(path), std::move(hello), std::move(handlers), std::move(memory)));
  MONARCH_ASSIGN(made->reader_, DoorReader::make({.heard = made->handlers_.heard, .wanted = made->handlers_.wanted}));
  MONARCH_ASSIGN(made->thread_, JoiningThread::start([self = made.get()](int stop) { self->live(stop); }));
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

void DoorThread::wake() const { reader_->look_soon(); }

bool DoorThread::read_until(const void* key, const std::function<bool()>& done, Instant until) {
  if (is_here()) return false;
  reader_->wait(key, done, until);
  return true;
}

void DoorThread::run(std::function<void()> run) {
  if (is_own() || !reader_->later(run)) run();
}

Instant DoorThread::look() const {
  Instant next = Instant::never();
  if (handlers_.look) reader_->alone([&] { next = handlers_.look(); });
  return next;
}

void DoorThread::set(Connection connection) {
  {
    const std::lock_guard lock(mutex_);
    now_ = std::move(connection);
  }
  changed_.notify_all();
}

void DoorThread::live(int stop) {
  own_ = std::this_thread::get_id();
  stop_ = stop;
  const std::string why = come_and_hear();
  reader_->close();
  if (!why.empty() && handlers_.cut_off) handlers_.cut_off(why);
}

std::string DoorThread::why_cut_off(const DoorClient* connection) const {
  const bool whole = is_open(stop_) && reader_->is_whole() && (connection == nullptr || connection->has_its_socket());
  return whole ? ""
               : "somebody in this process has closed descriptors that are not his, and no call reaches it any more";
}

std::string DoorThread::come_and_hear() {
  Duration between = kFirstPause;
  Instant named = boot_now() + kNamedEvery;
  Instant had_room = boot_now();
  while (!pause(stop_, Duration::zero())) {
    const Duration until_look = look() - boot_now();
    auto came =
        DoorClient::come(path_, hello_, std::clamp(until_look, kShortestPatience, kWelcomePatience), memory_, stop_);
    if (!came) {
      const int error = came.error().errno_value;
      if (error != EMFILE && error != ENFILE) had_room = boot_now();
      if (handlers_.cut_off && boot_now() - had_room > kWithoutRoom) return came.error().message;
      if (pause(stop_, between)) return why_cut_off(nullptr);
      between = std::min(between * 2, kLongestPause);
      if (boot_now() < named) continue;
      say(text("no connection to the post of this host yet: ", came.error().message));
      named = boot_now() + kNamedEvery;
      continue;
    }
    const Connection connection = std::move(came).value();
    handlers_.came(connection);
    set(connection);
    reader_->begin(connection);
    const Error why = hear_to_the_end(connection);
    // WARNING: what has taken the number of a closed descriptor is not ours to close.
    if (std::string words = why_cut_off(connection.get()); !words.empty() && handlers_.cut_off) return words;
    set(nullptr);
    connection->close();  // who sends by it still, or reads it, hears of that
    reader_->end();
    handlers_.ended(connection, why.message);
    between = kFirstPause;
    had_room = boot_now();
    named = had_room + kNamedEvery;
  }
  return why_cut_off(nullptr);
}

Error DoorThread::hear_to_the_end(const Connection& connection) const {
  Instant until = look();
  for (;;) {
    const Instant own_look = handlers_.cut_off ? boot_now() + kOwnLook : Instant::never();
    const auto served = reader_->serve(std::min(until, own_look), stop_);
    if (!served.ok()) return served.error();
    if (*served == DoorReader::Served::kMessage) continue;
    if (handlers_.cut_off && !why_cut_off(connection.get()).empty()) {
      return Error{ErrorCode::kGone, "its descriptors are not its own any more"};
    }
    if (*served == DoorReader::Served::kWoken || boot_now() >= until) until = look();
  }
}

}  // namespace monarch
