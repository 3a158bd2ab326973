#pragma once

// Futures of calls: what a call gives, once its ranks have answered.
//
// Thread: any; several may wait for the same.

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <monarch/plugin_v1.h>
#include <monarch/codec.hpp>
#include <monarch/outcome.hpp>

namespace monarch {

// A get() that has waited for as long as it was told to; the call goes on.
class MONARCH_SEEN NotYet : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A get() by which an actor would wait for itself for ever; the call goes on.
class MONARCH_SEEN Deadlock : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

inline namespace v1 MONARCH_INSIDE {

using Nanoseconds = std::chrono::nanoseconds;
inline constexpr Nanoseconds kForEver = Nanoseconds::max();

namespace detail {

// Beyond a hundred years it is the same.
inline std::chrono::steady_clock::time_point moment_in(Nanoseconds time) {
  constexpr Nanoseconds kLongest = std::chrono::hours(24 * 365 * 100);
  return std::chrono::steady_clock::now() + std::min(time, kLongest);
}

// Tells the host that this thread waits for calls for as long as it takes.
class Waiting {
 public:
  explicit Waiting(const monarch_host_v1* host)
      : host_(host), by_(static_cast<const monarch_waiting_v1*>(host->extension(host, MONARCH_WAITING_V1))) {}
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    for (const std::uint64_t call : begun_) by_->end(host_, call);
  }
  // Throws Deadlock.
  void look(const std::vector<std::uint64_t>& calls) {
    if (by_ == nullptr) return;
    begun_ = calls;
    for (const std::uint64_t call : calls) {
      std::array<char, 1024> why{};
      if (by_->begin(host_, call, why.data(), why.size()) != 0) throw Deadlock(why.data());
    }
  }

 private:
  const monarch_host_v1* host_;
  const monarch_waiting_v1* by_;
  std::vector<std::uint64_t> begun_;
};

// What has come of a call, as bytes. Owners: its futures and streams, and the host until the last answer.
class CallState {
 public:
  struct Answered {
    std::uint32_t rank = 0;
    std::uint64_t generation = 0;
    Kind kind = Kind::kGone;
    std::string value;
    std::string type;
    std::string text;
    std::string traceback;
  };

  CallState(const monarch_host_v1* host, std::string mesh) : host_(host), mesh_(std::move(mesh)) {}

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
    call.on_answer = &CallState::on_answer;
    auto kept = std::make_unique<std::shared_ptr<CallState>>(state);
    call.user = kept.release();  // on_answer frees it, with the last
    const std::uint64_t number = state->host_->call(state->host_, &call);
    {
      const std::lock_guard lock(state->mutex_);
      state->numbers_.push_back(number);
      if (!state->cancelled_) return;
    }
    state->host_->cancel(state->host_, number);
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
  // The next that nobody has taken; nothing: there is none any more.
  std::optional<Answered> next(Nanoseconds within) {
    std::unique_lock lock(mutex_);
    wait(lock, within, false, [this] { return taken_ < answers_.size() || over_; });
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
  // Once it is over, on the host's thread; at once, on this one, if it is.
  void then(std::function<void()> run) {
    {
      const std::lock_guard lock(mutex_);
      if (!over_) return after_.push_back(std::move(run));
    }
    run_guarded(run);
  }

 private:
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
  template <class Ready>
  void wait(std::unique_lock<std::mutex>& lock, Nanoseconds within, bool needs_all, const Ready& ready) {
    if (ready()) return;
    if (within == kForEver) return wait_as_long_as_it_takes(lock, ready, needs_all);
    if (changed_.wait_for(lock, within, ready)) return;
    throw NotYet("no answer yet: " + std::to_string(answers_.size()) + " ranks of " + mesh_ + " have answered");
  }

  // Who needs all answers, one of which waits for him, would wait for ever.
  template <class Ready>
  void wait_as_long_as_it_takes(std::unique_lock<std::mutex>& lock, const Ready& ready, bool needs_all) {
    if (!needs_all) return changed_.wait(lock, ready);
    if (changed_.wait_for(lock, std::chrono::milliseconds(10), ready)) return;
    const std::vector<std::uint64_t> numbers = numbers_;
    Waiting told(host_);
    do {
      lock.unlock();
      told.look(numbers);
      lock.lock();
    } while (!changed_.wait_for(lock, std::chrono::seconds(1), ready));
  }

  static void on_answer(void* user, const monarch_answer_v1* answer) {
    auto* const kept = static_cast<std::shared_ptr<CallState>*>(user);
    const std::shared_ptr<CallState> state = *kept;
    if (answer == nullptr) delete kept;
    state->take(answer);
  }
  void take(const monarch_answer_v1* answer) {
    std::vector<std::function<void()>> after;
    {
      const std::lock_guard lock(mutex_);
      if (answer == nullptr) {
        over_ = --under_way_ == 0;
        if (over_) after = std::exchange(after_, {});
      } else {
        answers_.push_back({.rank = answer->rank,
                            .generation = answer->generation,
                            .kind = Kind(answer->kind),
                            .value = std::string(static_cast<const char*>(answer->value.data), answer->value.size),
                            .type = answer->type,
                            .text = answer->text,
                            .traceback = answer->traceback});
      }
    }
    changed_.notify_all();
    for (const std::function<void()>& run : after) run_guarded(run);
  }

  const monarch_host_v1* host_;
  const std::string mesh_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Answered> answers_;
  std::size_t taken_ = 0;
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
  if (codec::decode(answered.value, value, error)) {
    outcome.value = std::move(value);
  } else {
    outcome.kind = Kind::kRemoteError;
    outcome.type = "monarch::BadResult";
    outcome.text = "the result is of another shape: " + error.what;
  }
  return outcome;
}

}  // namespace detail

// The outcomes of a call in the order in which they come: for (auto&& outcome : stream) …
template <class R>
class MONARCH_SEEN Stream {
 public:
  using Value = Outcome<detail::Held<R>>;

  explicit Stream(std::shared_ptr<detail::CallState> call) : call_(std::move(call)) {}

  // Nothing: all have come. NotYet after `within`.
  std::optional<Value> next(Nanoseconds within = kForEver) {
    auto answered = call_->next(within);
    if (!answered) return std::nullopt;
    return detail::outcome_of<R>(*call_, std::move(*answered));
  }
  void cancel() { call_->cancel(); }

  struct End {};
  class Iterator {
   public:
    explicit Iterator(Stream* stream) : stream_(stream), at_(stream->next()) {}
    bool operator==(End /*end*/) const { return !at_.has_value(); }
    Iterator& operator++() {
      at_ = stream_->next();
      return *this;
    }
    Value& operator*() { return *at_; }

   private:
    Stream* stream_;
    std::optional<Value> at_;
  };
  Iterator begin() { return Iterator(this); }
  End end() const { return {}; }

 private:
  std::shared_ptr<detail::CallState> call_;
};

// A call of several ranks.
template <class R>
class MONARCH_SEEN Future {
 public:
  using Value = detail::Held<R>;

  explicit Future(std::shared_ptr<detail::CallState> call) : call_(std::move(call)) {}

  // The values of all ranks; throws the error of the first, by rank, that has one. NotYet after `within`, and the call
  // goes on.
  ValueMesh<Value> get(Nanoseconds within = kForEver) const {
    std::map<std::uint32_t, Value> values;
    for (Outcome<Value>& outcome : collect(within)) {
      if (!outcome) outcome.raise();
      values.emplace(outcome.rank, std::move(*outcome.value));
    }
    return ValueMesh<Value>(std::move(values));
  }
  // Of each rank a value or an error, by rank.
  std::vector<Outcome<Value>> collect(Nanoseconds within = kForEver) const {
    std::map<std::uint32_t, Outcome<Value>> outcomes;
    for (auto& answered : call_->all(within)) {
      const std::uint32_t rank = answered.rank;
      outcomes.emplace(rank, detail::outcome_of<R>(*call_, std::move(answered)));
    }
    std::vector<Outcome<Value>> all;
    for (auto& [rank, outcome] : outcomes) all.push_back(std::move(outcome));
    return all;
  }
  bool ready() const { return call_->over(); }
  void cancel() { call_->cancel(); }
  // Once all ranks have answered: `run` gets this future, on a thread of the runtime, and must not wait; a call waits
  // where too much is under way. Whatever `run` refers to has to live until then.
  template <class Run>
  void then(Run run) const {
    call_->then([run = std::move(run), call = call_]() mutable { run(Future(call)); });
  }

 private:
  std::shared_ptr<detail::CallState> call_;
};

// A call of one rank.
template <class R>
class MONARCH_SEEN FutureOne {
 public:
  using Value = detail::Held<R>;

  explicit FutureOne(Future<R> all) : all_(std::move(all)) {}

  // Its value; throws its error. NotYet after `within`, and the call goes on.
  R get(Nanoseconds within = kForEver) const {
    Outcome<Value> outcome = collect(within);
    if (!outcome) outcome.raise();
    if constexpr (!std::is_void_v<R>) return std::move(*outcome.value);
  }
  Outcome<Value> collect(Nanoseconds within = kForEver) const {
    std::vector<Outcome<Value>> outcomes = all_.collect(within);
    if (outcomes.empty()) return {};  // a host that says nothing: nobody knows
    return std::move(outcomes.front());
  }
  bool ready() const { return all_.ready(); }
  void cancel() { all_.cancel(); }
  template <class Run>
  void then(Run run) const {
    all_.then([run = std::move(run)](Future<R> all) mutable { run(FutureOne(std::move(all))); });
  }

 private:
  Future<R> all_;
};

// What all of them give, in their order; throws the error of the first that has one. NotYet after `within`.
template <class F>
auto all(const std::vector<F>& futures, Nanoseconds within = kForEver) {
  const auto until = detail::moment_in(within);
  const auto left = [&] {
    return within == kForEver ? kForEver : std::max(Nanoseconds(until - std::chrono::steady_clock::now()), {});
  };
  using Value = decltype(futures.front().get());
  if constexpr (std::is_void_v<Value>) {
    for (const F& future : futures) future.get(left());
  } else {
    std::vector<Value> values;
    for (const F& future : futures) values.push_back(future.get(left()));
    return values;
  }
}

// The place of one of them that is ready. NotYet after `within`; std::invalid_argument where there is none to wait for.
template <class F>
std::size_t any(const std::vector<F>& futures, Nanoseconds within = kForEver) {
  if (futures.empty()) throw std::invalid_argument("any: no future");
  struct First {  // owners: this function, and each future until it is ready
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<std::size_t> place;
  };
  const auto first = std::make_shared<First>();
  for (std::size_t place = 0; place < futures.size(); ++place) {
    futures[place].then([first, place](const auto& /*ready*/) {
      const std::lock_guard lock(first->mutex);
      if (!first->place) first->place = place;
      first->changed.notify_all();
    });
  }
  std::unique_lock lock(first->mutex);
  const auto has_one = [&first] { return first->place.has_value(); };
  if (within == kForEver) {
    first->changed.wait(lock, has_one);
  } else if (!first->changed.wait_for(lock, within, has_one)) {
    throw NotYet("none of " + std::to_string(futures.size()) + " calls has ended yet");
  }
  return *first->place;
}

}  // namespace MONARCH_INSIDE
}  // namespace monarch
