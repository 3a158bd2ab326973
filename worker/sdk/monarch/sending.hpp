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

// As the parameter is, so that the endpoint finds what it takes; what is so already is not copied.
template <class Parameter, class A>
void pack_one(codec::Writer& writer, A&& argument, std::size_t& place) {
  ++place;
  if constexpr (std::is_same_v<Parameter, std::remove_cvref_t<A>>) {
    codec::write(writer, argument);
  } else {
    codec::write(writer, static_cast<Parameter>(std::forward<A>(argument)));
  }
}

template <class Parameters, std::size_t... I, class... A>
std::string packed_each(std::index_sequence<I...> /*all*/, A&&... arguments) {
  std::size_t place = 0;
  try {
    codec::Writer writer;
    {
      const auto list = writer.array(sizeof...(A));
      (pack_one<std::tuple_element_t<I, Parameters>>(writer, std::forward<A>(arguments), place), ...);
    }
    return writer.take();
  } catch (const std::length_error& error) {
    throw BadArguments("argument " + std::to_string(place) + ": " + error.what());
  }
}

template <class Parameters, class... A>
std::string packed(A&&... arguments) {
  constexpr bool kAsMany = std::tuple_size_v<Parameters> == sizeof...(A);
  static_assert(kAsMany, "as many arguments as the endpoint takes");
  if constexpr (kAsMany) {
    return packed_each<Parameters>(std::index_sequence_for<A...>(), std::forward<A>(arguments)...);
  } else {
    return {};
  }
}

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
