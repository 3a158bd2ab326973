#pragma once

// What has come of a call, as bytes; and what waits for it. Futures and streams are made of it.
//
// Thread: any.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <monarch/plugin_v1.h>
#include <monarch/buffer.hpp>
#include <monarch/codec.hpp>
#include <monarch/outcome.hpp>

namespace monarch {

// A get() that has waited for as long as it was told to; the call goes on.
class MONARCH_SEEN NotYet : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A wait that nothing would end: by which an actor would wait for itself, or the thread that brings answers for one.
// The call goes on.
class MONARCH_SEEN Deadlock : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

inline namespace v1 MONARCH_INSIDE {

using Nanoseconds = std::chrono::nanoseconds;
inline constexpr Nanoseconds kForEver = Nanoseconds::max();

// How long something may take, in any unit. More than a hundred years are for ever, less than nothing is nothing.
class MONARCH_SEEN Patience {
 public:
  constexpr Patience() = default;
  template <class Count, class Period>
  constexpr Patience(std::chrono::duration<Count, Period> time) : time_(nanoseconds_of(time)) {}
  constexpr Nanoseconds time() const { return time_; }
  constexpr bool is_for_ever() const { return time_ == kForEver; }

 private:
  // Compared as a real: in nanoseconds std::chrono::hours::max() is less than nothing.
  template <class Count, class Period>
  static constexpr Nanoseconds nanoseconds_of(std::chrono::duration<Count, Period> time) {
    constexpr long double kLongest = 100.0L * 365 * 24 * 3600;
    const long double seconds = std::chrono::duration<long double>(time).count();
    if (!(seconds < kLongest)) return kForEver;  // what is no number, too
    return seconds <= 0 ? Nanoseconds() : std::chrono::duration_cast<Nanoseconds>(time);
  }
  Nanoseconds time_{};
};

namespace detail {

// Beyond a hundred years it is the same.
inline std::chrono::steady_clock::time_point moment_in(Nanoseconds time) {
  constexpr Nanoseconds kLongest = std::chrono::hours(24 * 365 * 100);
  return std::chrono::steady_clock::now() + std::min(time, kLongest);
}

// Tells the host that this thread waits, and for which calls as long as it takes.
class Waiting {
 public:
  explicit Waiting(const monarch_host_v1* host)
      : host_(host), by_(static_cast<const monarch_waiting_v1*>(host->extension(host, MONARCH_WAITING_V1))) {}
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    for (const std::uint64_t call : begun_) by_->end(host_, call);
  }
  // Throws Deadlock: nothing would end it.
  void look(const std::vector<std::uint64_t>& calls) {
    if (by_ == nullptr) return;
    look_at(kNoCall);
    begun_ = calls;
    for (const std::uint64_t call : calls) look_at(call);
  }

 private:
  static constexpr std::uint64_t kNoCall = 0;
  void look_at(std::uint64_t call) const {
    std::array<char, 1024> why{};
    if (by_->begin(host_, call, why.data(), why.size()) != 0) throw Deadlock(why.data());
  }
  const monarch_host_v1* host_;
  const monarch_waiting_v1* by_;
  std::vector<std::uint64_t> begun_;
};

// A wait that ends before it is looked at no closer, and when it is looked at again.
inline constexpr Nanoseconds kSoon = std::chrono::milliseconds(10);
inline constexpr Nanoseconds kLookEvery = std::chrono::seconds(1);

// What has come of a call, as bytes. Owners: its futures and streams, and the host until the last answer.
class CallState {
 public:
  struct Answered {
    std::uint32_t rank = 0;
    std::uint64_t generation = 0;
    Kind kind = Kind::kGone;
    Buffer value;
    std::string type;
    std::string text;
    std::string traceback;
  };

  CallState(const monarch_host_v1* host, std::string mesh)
      : host_(host),
        reading_(static_cast<const monarch_reading_v1*>(host->extension(host, MONARCH_READING_V1))),
        mesh_(std::move(mesh)) {}

  // It is over once as many calls as this have ended that it was sent as.
  static std::shared_ptr<CallState> of(const monarch_host_v1* host, std::string mesh, std::size_t calls) {
    auto state = std::make_shared<CallState>(host, std::move(mesh));
    state->under_way_ = calls;
    state->over_ = calls == 0;
    return state;
  }
  // The host has it from now on.
  static void send(const std::shared_ptr<CallState>& state, monarch_call_v1 call) {
    call.struct_size = sizeof call;
    if (state->reading_ != nullptr) call.flags |= MONARCH_CALL_ANY_THREAD;
    call.on_answer = &CallState::on_answer;
    auto kept = std::make_unique<std::shared_ptr<CallState>>(state);
    call.user = kept.release();  // on_answer frees it, with the last
    state->expect(call);
    const std::uint64_t number = state->host_->call(state->host_, &call);
    bool cancelled = false;
    bool attended = false;
    {
      const std::lock_guard lock(state->mutex_);
      state->numbers_.push_back(number);
      cancelled = state->cancelled_;
      attended = !state->after_.empty();
    }
    if (attended) state->attend({number});
    if (cancelled) state->host_->cancel(state->host_, number);
  }

  const std::string& mesh() const { return mesh_; }
  void cancel() {
    std::vector<std::uint64_t> numbers;
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
      if (!over_) numbers = numbers_;
    }
    for (const std::uint64_t number : numbers) host_->cancel(host_, number);
  }
  bool over() const {
    const std::lock_guard lock(mutex_);
    return over_;
  }
  // The next that nobody has taken; nothing: there is none any more. `needs_all`: the one who asks goes on with none of
  // them alone.
  std::optional<Answered> next(Nanoseconds within, bool needs_all = false) {
    std::unique_lock lock(mutex_);
    const bool needs_this = needs_all || expected_ <= answers_.size() + 1;
    const Nexts asked(nexts_);
    wait(lock, within, needs_this, [this] { return taken_ < answers_.size() || over_; });
    if (taken_ == answers_.size()) return std::nullopt;
    return answers_[taken_++];
  }
  // All of them, each time anew.
  std::deque<Answered> all(Nanoseconds within) {
    std::unique_lock lock(mutex_);
    wait(lock, within, true, [this] { return over_; });
    return answers_;
  }
  // Those that have come.
  std::deque<Answered> so_far() const {
    const std::lock_guard lock(mutex_);
    return answers_;
  }
  // Throws Deadlock where a wait of this thread for it, as long as it takes, would have no end.
  void look(Waiting& told) const {
    std::vector<std::uint64_t> numbers;
    {
      const std::lock_guard lock(mutex_);
      numbers = numbers_;
    }
    told.look(numbers);
  }
  const monarch_host_v1* host() const { return host_; }
  // Once it is over, on the host's thread; at once, on this one, if it is.
  void then(std::function<void()> run) {
    std::vector<std::uint64_t> numbers;
    bool over = false;
    {
      const std::lock_guard lock(mutex_);
      over = over_;
      if (!over) after_.push_back(std::move(run));
      numbers = numbers_;
    }
    if (over) return run_guarded(run);
    attend(numbers);
  }

 private:
  using Moment = std::chrono::steady_clock::time_point;
  // Who waits for the next answer; it comes while the lock is held.
  class Nexts {
   public:
    explicit Nexts(std::atomic<std::size_t>& count) : count_(count) { ++count_; }
    Nexts(const Nexts&) = delete;
    Nexts& operator=(const Nexts&) = delete;
    ~Nexts() { --count_; }

   private:
    std::atomic<std::size_t>& count_;
  };

  // Nobody need wait for it: then() does.
  void attend(const std::vector<std::uint64_t>& numbers) const {
    if (reading_ == nullptr) return;
    for (const std::uint64_t number : numbers) reading_->attend(host_, number);
  }
  // On a thread of the host's, which is not the one that reads.
  void run_after(std::vector<std::function<void()>> after) const {
    if (after.empty()) return;
    using After = std::vector<std::function<void()>>;
    const auto run = [](void* user) {
      const std::unique_ptr<After> kept(static_cast<After*>(user));
      for (const std::function<void()>& one : *kept) run_guarded(one);
    };
    auto kept = std::make_unique<After>(std::move(after));
    if (reading_ == nullptr) return run(kept.release());
    reading_->run(host_, run, kept.release());
  }
  // What it lets out has nowhere to go: the caller is the host.
  static void run_guarded(const std::function<void()>& run) {
    try {
      run();
    } catch (const std::exception& error) {
      (void)std::fprintf(stderr, "monarch: then() let out: %s\n", error.what());
    } catch (...) {
      (void)std::fprintf(stderr, "monarch: then() let out something that is no std::exception\n");
    }
  }
  void expect(const monarch_call_v1& call) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < call.ranks_count; ++i) expected_ += call.ranks[i].count;
  }

  // Whether it is ready then. This thread may be the one that reads the answers.
  template <class Ready>
  bool wait_until(std::unique_lock<std::mutex>& lock, Moment until, const Ready& ready) {
    if (ready()) return true;
    if (reading_ == nullptr) return changed_.wait_until(lock, until, ready);
    struct Asked {
      const CallState* state;
      const Ready* ready;
    } asked{this, &ready};
    const auto done = [](void* user) -> int {
      const Asked& by = *static_cast<const Asked*>(user);
      const std::lock_guard held(by.state->mutex_);
      return (*by.ready)() ? 1 : 0;
    };
    const Nanoseconds left = until - std::chrono::steady_clock::now();
    lock.unlock();
    const bool waited = reading_->wait(host_, this, done, &asked, left.count()) != 0;
    lock.lock();
    return waited ? ready() : changed_.wait_until(lock, until, ready);
  }

  // Who needs all answers, one of which waits for him, would wait for ever.
  template <class Ready>
  void wait(std::unique_lock<std::mutex>& lock, Nanoseconds within, bool needs_all, const Ready& ready) {
    const auto until = moment_in(within);
    if (wait_until(lock, std::min(until, moment_in(kSoon)), ready)) return;
    std::optional<Waiting> told;
    for (;;) {
      if (std::chrono::steady_clock::now() >= until) break;
      if (!told) told.emplace(host_);
      const std::vector<std::uint64_t> numbers =
          needs_all && within == kForEver ? numbers_ : std::vector<std::uint64_t>();
      lock.unlock();
      told->look(numbers);
      lock.lock();
      if (wait_until(lock, std::min(until, moment_in(kLookEvery)), ready)) return;
    }
    throw NotYet("no answer yet: " + std::to_string(answers_.size()) + " ranks of " + mesh_ + " have answered");
  }

  static void on_answer(void* user, const monarch_answer_v1* answer) {
    auto* const kept = static_cast<std::shared_ptr<CallState>*>(user);
    const std::shared_ptr<CallState> state = *kept;
    if (answer == nullptr) delete kept;
    state->take(answer);
  }
  void take(const monarch_answer_v1* answer) {
    std::vector<std::function<void()>> after;
    bool tells = false;
    {
      const std::lock_guard lock(mutex_);
      if (answer == nullptr) {
        over_ = --under_way_ == 0;
        if (over_) after = std::exchange(after_, {});
      } else {
        answers_.push_back({.rank = answer->rank,
                            .generation = answer->generation,
                            .kind = Kind(answer->kind),
                            .value = value_of(host_, *answer),
                            .type = answer->type,
                            .text = answer->text,
                            .traceback = answer->traceback});
      }
      tells = over_ || nexts_ > 0;
    }
    if (tells) changed_.notify_all();
    if (tells && reading_ != nullptr) reading_->wake(host_, this);
    run_after(std::move(after));
  }

  const monarch_host_v1* host_;
  const monarch_reading_v1* reading_;  // nullptr: an older host, which brings the answers
  const std::string mesh_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Answered> answers_;
  std::size_t taken_ = 0;
  std::atomic<std::size_t> nexts_{0};  // who waits for the next one
  std::size_t expected_ = 0;           // answers, where all are told
  std::vector<std::uint64_t> numbers_;
  bool cancelled_ = false;
  std::size_t under_way_ = 1;
  bool over_ = false;
  std::vector<std::function<void()>> after_;
};

template <class R>
Outcome<Held<R>> outcome_of(const CallState& call, CallState::Answered answered) {
  Outcome<Held<R>> outcome{.mesh = call.mesh(),
                           .rank = answered.rank,
                           .generation = answered.generation,
                           .kind = answered.kind,
                           .value = {},
                           .type = std::move(answered.type),
                           .text = std::move(answered.text),
                           .traceback = std::move(answered.traceback)};
  if (answered.kind != Kind::kValue) return outcome;
  Held<R> value{};
  codec::DecodeError error;
  if (codec::decode(answered.value.view(), value, error, codec::kValueLimits, keeper_of(answered.value))) {
    outcome.value = std::move(value);
  } else {
    outcome.kind = Kind::kRemoteError;
    outcome.type = "monarch::BadResult";
    outcome.text = "the result is of another shape: " + error.what;
  }
  return outcome;
}

}  // namespace detail
}  // namespace MONARCH_INSIDE
}  // namespace monarch
