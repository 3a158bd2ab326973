#pragma once

// What handles of actors (monarch/actors.hpp) send by: arguments as their endpoint takes them, whose turn it is, and
// errors for which nobody waits.
//
// Thread: any.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <monarch/actor.hpp>
#include <monarch/call_state.hpp>
#include <monarch/codec.hpp>
#include <monarch/mesh.hpp>

namespace monarch {
inline namespace v1 MONARCH_INSIDE {

namespace detail {

// WARNING: a static object within a member of a class that is seen is STB_GNU_UNIQUE: all plugins of a process would
// share it.
template <auto F>
const std::string& endpoint_name() {
  static const std::string name(name_of<F>());
  return name;
}

template <class Parameter, class Argument>
using AsTaken =
    std::conditional_t<std::is_same_v<Parameter, std::remove_cvref_t<Argument>>, const Parameter&, const Parameter>;

// Arguments as their endpoint takes them: each as its parameter is, so that the endpoint finds what it takes. What is
// so already is not copied, and large bytes are not either: they are read where they lie, as long as this lives.
template <class Parameters, class... A>
class Packed {
 public:
  static constexpr bool kAsMany = std::tuple_size_v<Parameters> == sizeof...(A);
  static_assert(kAsMany, "as many arguments as the endpoint takes");
  explicit Packed(A&&... /*arguments*/) {}
  const codec::Writer& written() const { return writer_; }

 private:
  codec::Writer writer_;
};
template <class... P, class... A>
requires(sizeof...(P) == sizeof...(A)) class Packed<std::tuple<P...>, A...> {
 public:
  explicit Packed(A&&... arguments) : taken_(static_cast<AsTaken<P, A>>(std::forward<A>(arguments))...) {
    writer_.note_large();
    std::size_t place = 0;
    const auto write = [this, &place](const auto& each) {
      ++place;
      codec::write(writer_, each);
    };
    try {
      const auto list = writer_.array(sizeof...(A));
      std::apply([&write](const auto&... each) { (write(each), ...); }, taken_);
    } catch (const std::length_error& error) {
      throw BadArguments("argument " + std::to_string(place) + ": " + error.what());
    }
  }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;
  const codec::Writer& written() const { return writer_; }

 private:
  std::tuple<AsTaken<P, A>...> taken_;
  codec::Writer writer_;
};

template <class M>
concept IsMember = std::is_member_function_pointer_v<M>;

// Errors of calls for whose values nobody waits.
class BroadcastFailures {
 public:
  using Run = std::function<void(const CallState& call, const CallState::Answered& ended, const std::string& what)>;
  static BroadcastFailures& here() {
    static BroadcastFailures failures;
    return failures;
  }
  void add(const CallState& call, const CallState::Answered& ended, const std::string& what) {
    Run run;
    {
      const std::lock_guard lock(mutex_);
      ++count_;
      run = run_;
    }
    if (run) run(call, ended, what);
  }
  std::uint64_t count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  void tell(Run run) {
    const std::lock_guard lock(mutex_);
    run_ = std::move(run);
  }

 private:
  std::mutex mutex_;
  std::uint64_t count_ = 0;
  Run run_;
};

// How many calls this handle has under way at each rank of its view, and whose turn is next.
class Turns {
 public:
  std::size_t take(std::size_t ranks) {
    const std::lock_guard lock(mutex_);
    under_way_.resize(std::max(under_way_.size(), ranks));
    std::size_t least = next_ % ranks;
    for (std::size_t i = 1; i < ranks; ++i) {
      const std::size_t place = (next_ + i) % ranks;
      if (under_way_[place] < under_way_[least]) least = place;
    }
    ++under_way_[least];
    next_ = least + 1;
    return least;
  }
  void done(std::size_t place) {
    const std::lock_guard lock(mutex_);
    --under_way_[place];
  }

 private:
  std::mutex mutex_;
  std::vector<std::size_t> under_way_;
  std::size_t next_ = 0;
};

}  // namespace detail
}  // namespace MONARCH_INSIDE
}  // namespace monarch
