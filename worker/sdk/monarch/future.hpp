#pragma once

// Futures of calls: what a call gives, once its ranks have answered.
//
// Thread: any; several may wait for the same.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
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

inline namespace v1 MONARCH_INSIDE {

using Nanoseconds = std::chrono::nanoseconds;
inline constexpr Nanoseconds kForEver = Nanoseconds::max();

namespace detail {

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
    const std::lock_guard lock(state->mutex_);
    state->numbers_.push_back(number);
  }

  const std::string& mesh() const { return mesh_; }
  void cancel() {
    std::vector<std::uint64_t> numbers;
    {
      const std::lock_guard lock(mutex_);
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
    wait(lock, within, [this] { return taken_ < answers_.size() || over_; });
    if (taken_ == answers_.size()) return std::nullopt;
    return answers_[taken_++];
  }
  // All of them, each time anew.
  std::deque<Answered> all(Nanoseconds within) {
    std::unique_lock lock(mutex_);
    wait(lock, within, [this] { return over_; });
    return answers_;
  }
  // Once it is over, on the host's thread; at once, on this one, if it is.
  void then(std::function<void()> run) {
    {
      const std::lock_guard lock(mutex_);
      if (!over_) return after_.push_back(std::move(run));
    }
    run();
  }

 private:
  template <class Ready>
  void wait(std::unique_lock<std::mutex>& lock, Nanoseconds within, const Ready& ready) {
    if (within == kForEver) return changed_.wait(lock, ready);
    if (changed_.wait_for(lock, within, ready)) return;
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
    for (const std::function<void()>& run : after) run();
  }

  const monarch_host_v1* host_;
  const std::string mesh_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Answered> answers_;
  std::size_t taken_ = 0;
  std::vector<std::uint64_t> numbers_;
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
  // Once all ranks have answered: `run` gets this future, on a thread of the runtime, and must not wait.
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

}  // namespace MONARCH_INSIDE
}  // namespace monarch
