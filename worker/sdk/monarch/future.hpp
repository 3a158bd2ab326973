#pragma once

// Futures of calls: what a call gives, once its ranks have answered.
//
// Thread: any; several may wait for the same.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <monarch/call_state.hpp>
#include <monarch/outcome.hpp>

namespace monarch {
inline namespace v1 MONARCH_INSIDE {

namespace detail {

template <class F>
struct MONARCH_SEEN FutureAwaiter;

}  // namespace detail

// The outcomes of a call in the order in which they come: for (auto&& outcome : stream) …
template <class R>
class MONARCH_SEEN Stream {
 public:
  using Value = Outcome<detail::Held<R>>;

  explicit Stream(std::shared_ptr<detail::CallState> call) : call_(std::move(call)) {}

  // Nothing: all have come. NotYet after `within`.
  std::optional<Value> next(Patience within = kForEver) {
    auto answered = call_->next(within.time());
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

template <class R>
class MONARCH_SEEN FutureOne;

// A call of several ranks.
template <class R>
class MONARCH_SEEN Future {
 public:
  using Value = detail::Held<R>;

  explicit Future(std::shared_ptr<detail::CallState> call) : call_(std::move(call)) {}

  // The values of all ranks; throws the error of the first, by rank, that has one. NotYet after `within`, and the call
  // goes on.
  ValueMesh<Value> get(Patience within = kForEver) const {
    std::map<std::uint32_t, Value> values;
    for (Outcome<Value>& outcome : collect(within)) {
      if (!outcome) outcome.raise();
      values.emplace(outcome.rank, std::move(*outcome.value));
    }
    return ValueMesh<Value>(std::move(values));
  }
  // Of each rank a value or an error, by rank.
  std::vector<Outcome<Value>> collect(Patience within = kForEver) const {
    std::map<std::uint32_t, Outcome<Value>> outcomes;
    for (auto& answered : call_->all(within.time())) {
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
  template <class F>
  friend struct detail::FutureAwaiter;
  template <class One>
  friend class FutureOne;
  template <class F>
  friend std::size_t any(const std::vector<F>& futures, Patience within);
  const std::shared_ptr<detail::CallState>& state() const { return call_; }

  std::shared_ptr<detail::CallState> call_;
};

// A call of one rank.
template <class R>
class MONARCH_SEEN FutureOne {
 public:
  using Value = detail::Held<R>;

  explicit FutureOne(Future<R> all) : all_(std::move(all)) {}

  // Its value; throws its error. NotYet after `within`, and the call goes on.
  R get(Patience within = kForEver) const {
    Outcome<Value> outcome = collect(within);
    if (!outcome) outcome.raise();
    if constexpr (!std::is_void_v<R>) return std::move(*outcome.value);
  }
  Outcome<Value> collect(Patience within = kForEver) const {
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
  template <class F>
  friend struct detail::FutureAwaiter;
  template <class F>
  friend std::size_t any(const std::vector<F>& futures, Patience within);
  const std::shared_ptr<detail::CallState>& state() const { return all_.state(); }

  Future<R> all_;
};

// What all of them give, in their order; throws the error of the first that has one. NotYet after `within`.
template <class F>
auto all(const std::vector<F>& futures, Patience within = kForEver) {
  const auto until = detail::moment_in(within.time());
  const auto left = [&] {
    return within.is_for_ever() ? kForEver : std::max(Nanoseconds(until - std::chrono::steady_clock::now()), {});
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
std::size_t any(const std::vector<F>& futures, Patience within = kForEver) {
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
  const auto until = detail::moment_in(within.time());
  if (first->changed.wait_until(lock, std::min(until, detail::moment_in(detail::kSoon)), has_one)) return *first->place;
  if (std::chrono::steady_clock::now() < until) {
    lock.unlock();
    detail::Waiting told(futures.front().state()->host());
    told.look({});
    lock.lock();
  }
  if (!first->changed.wait_until(lock, until, has_one)) {
    throw NotYet("none of " + std::to_string(futures.size()) + " calls has ended yet");
  }
  return *first->place;
}

}  // namespace MONARCH_INSIDE
}  // namespace monarch
