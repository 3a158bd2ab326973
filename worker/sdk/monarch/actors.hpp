#pragma once

// Calling actors: a handle to the actors of one name in the ranks of a view, and the ways to call them. All of them
// send one message to each rank and hear of each exactly one outcome.
//
//   auto greeters = controller.mesh("trainer").actors<Greeter>("greeter").within(5s);
//   greeters.call(&Greeter::say_hello, "world").get()      a value of each rank, or the first error
//   greeters.call<&Greeter::say_hello>("world")            the same, with the member known to the compiler
//   …call_one…                                             of a view of one rank
//   …choose…                                               of one of the view's, that has least to do for this handle
//   …stream…                                               outcomes as they come
//   …broadcast…                                            nobody waits, and values are not sent back; errors are
//                                                          counted, and a controller's on_failure is told of them
//   …fold<…>(start, op, …)                                 op(op(start, first), second)… over values as they come
//   …scatter<…>(list)                                      to each rank its own argument, in the order of the view
//
// A handle is a value: it may be copied, kept, and sent as an argument.
//
// Thread: any.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <monarch/plugin_v1.h>
#include <monarch/actor.hpp>
#include <monarch/codec.hpp>
#include <monarch/future.hpp>
#include <monarch/mesh.hpp>
#include <monarch/outcome.hpp>
#include <monarch/signature.hpp>

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

// As the parameters are, so that the endpoint finds what it takes.
template <class Parameters, class... A>
std::string packed(A&&... arguments) {
  constexpr bool kAsMany = std::tuple_size_v<Parameters> == sizeof...(A);
  static_assert(kAsMany, "as many arguments as the endpoint takes");
  if constexpr (kAsMany) {
    return codec::encode(Parameters(std::forward<A>(arguments)...));
  } else {
    return {};
  }
}

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

template <class C>
class MONARCH_SEEN ActorMesh {
 public:
  ActorMesh() = default;  // of nobody; for what reads one
  ActorMesh(std::string actor, View view) : actor_(std::move(actor)), view_(std::move(view)) {}

  const std::string& actor() const { return actor_; }
  const View& view() const { return view_; }
  std::size_t size() const { return view_.size(); }

  ActorMesh slice(std::string_view dim, std::uint32_t from, std::uint32_t to, std::uint32_t step = 1) const {
    return with(view_.slice(dim, from, to, step));
  }
  ActorMesh at(std::string_view dim, std::uint32_t index) const { return with(view_.at(dim, index)); }
  // Calls through it end as DeadlineExceeded after this time.
  ActorMesh within(Nanoseconds deadline) const {
    ActorMesh mesh = *this;
    if (deadline == kForEver) {
      mesh.deadline_.reset();
    } else {
      mesh.deadline_ = std::min<Nanoseconds>(deadline, std::chrono::hours(24 * 365 * 100));
    }
    return mesh;
  }

  template <auto F, class... A>
  auto stream(A&&... arguments) const {
    using E = detail::Endpoint<F>;
    return Stream<typename E::Result>(send<F>(view_, pack<F>(std::forward<A>(arguments)...)));
  }
  template <auto F, class... A>
  auto call(A&&... arguments) const {
    using E = detail::Endpoint<F>;
    return Future<typename E::Result>(send<F>(view_, pack<F>(std::forward<A>(arguments)...)));
  }
  template <auto F, class... A>
  auto call_one(A&&... arguments) const {
    if (size() != 1) throw BadArguments("call_one: " + std::to_string(size()) + " ranks instead of one");
    return FutureOne<typename detail::Endpoint<F>::Result>(call<F>(std::forward<A>(arguments)...));
  }
  template <auto F, class... A>
  auto choose(A&&... arguments) const {
    if (size() == 0) throw BadArguments("choose: there is no rank");
    const std::size_t place = turns_->take(size());
    auto future = with(view_.only(place)).template call_one<F>(std::forward<A>(arguments)...);
    future.then([turns = turns_, place](const auto& /*ended*/) { turns->done(place); });
    return future;
  }
  template <auto F, class... A>
  void broadcast(A&&... arguments) const {
    const auto call = send<F>(view_, pack<F>(std::forward<A>(arguments)...), MONARCH_CALL_QUIET);
    call->then([call, what = actor_ + "." + detail::endpoint_name<F>()] {
      for (const auto& ended : call->so_far()) {
        if (ended.kind != Kind::kValue) detail::BroadcastFailures::here().add(*call, ended, what);
      }
    });
  }
  // Until each rank of the view has an actor that can be called: it is made, and was not lost meanwhile. NotYet after
  // `within`, with what is known of one that has none.
  void ready(Nanoseconds within) const {
    const auto until = detail::moment_in(within);
    std::vector<std::size_t> missing(size());
    for (std::size_t place = 0; place < missing.size(); ++place) missing[place] = place;
    while (!missing.empty()) {
      const Nanoseconds left = until - std::chrono::steady_clock::now();
      const auto [still, why] = unready(missing, std::max(left, Nanoseconds(1)));
      if (still.size() == missing.size()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      missing = still;
      if (!missing.empty() && std::chrono::steady_clock::now() >= until) {
        throw NotYet(std::to_string(missing.size()) + " of " + std::to_string(size()) + " ranks of " + view_.mesh() +
                     " are not ready; " + why);
      }
    }
  }
  // Throws the first error.
  template <auto F, class T, class Op, class... A>
  T fold(T start, Op op, A&&... arguments) const {
    for (auto&& outcome : stream<F>(std::forward<A>(arguments)...)) start = op(std::move(start), outcome.get());
    return start;
  }
  template <auto F, class A>
  auto scatter(const std::vector<A>& each) const {
    if (each.size() != size()) {
      throw BadArguments("scatter: " + std::to_string(each.size()) + " arguments for " + std::to_string(size()) +
                         " ranks");
    }
    const auto state = detail::CallState::of(detail::host_here(), view_.mesh(), each.size());
    for (std::size_t place = 0; place < each.size(); ++place) {
      send_part<F>(state, view_.only(place), pack<F>(each[place]), 0);
    }
    return Future<typename detail::Endpoint<F>::Result>(state);
  }

  // By the member's value, as the first line of a program has it: MONARCH_ACTOR of the class has to be in this plugin.
  template <class R, class B, class... P, class... A>
  auto call(R (B::*member)(P...), A&&... arguments) const {
    return call_member<typename detail::IsTask<std::decay_t<R>>::Value, std::tuple<std::decay_t<P>...>>(
        member, std::forward<A>(arguments)...);
  }
  template <class R, class B, class... P, class... A>
  auto call(R (B::*member)(P...) const, A&&... arguments) const {
    return call_member<typename detail::IsTask<std::decay_t<R>>::Value, std::tuple<std::decay_t<P>...>>(
        member, std::forward<A>(arguments)...);
  }

  bool operator==(const ActorMesh& other) const { return actor_ == other.actor_ && view_ == other.view_; }

  MONARCH_FIELDS_INSIDE(actor_, view_)

 private:
  ActorMesh with(View view) const {
    ActorMesh mesh(actor_, std::move(view));
    mesh.deadline_ = deadline_;
    return mesh;
  }

  struct Unready {
    std::vector<std::size_t> places;
    std::string why;  // of the first
  };
  // Asks each once.
  Unready unready(const std::vector<std::size_t>& places, Nanoseconds within) const {
    const ActorMesh asked = this->within(within);
    std::vector<std::shared_ptr<detail::CallState>> calls;
    for (const std::size_t place : places) {
      calls.push_back(detail::CallState::of(detail::host_here(), view_.mesh(), 1));
      asked.send_named(calls.back(), view_.only(place), "monarch.ready", "*", std::string(1, '\x90'), 0);
    }
    Unready unready;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto answers = calls[i]->all(kForEver);
      if (!answers.empty() && answers.front().kind == Kind::kValue) continue;
      unready.places.push_back(places[i]);
      if (unready.why.empty() && !answers.empty()) {
        unready.why = view_.mesh() + "/" + std::to_string(answers.front().rank) + ": " + answers.front().text;
      }
    }
    return unready;
  }

  template <auto F, class... A>
  static std::string pack(A&&... arguments) {
    return detail::packed<typename detail::Endpoint<F>::Arguments>(std::forward<A>(arguments)...);
  }
  template <auto F>
  std::shared_ptr<detail::CallState> send(const View& view, const std::string& arguments,
                                          std::uint32_t flags = 0) const {
    auto state = detail::CallState::of(detail::host_here(), view.mesh(), 1);
    send_part<F>(state, view, arguments, flags);
    return state;
  }
  template <auto F>
  void send_part(const std::shared_ptr<detail::CallState>& state, const View& view, const std::string& arguments,
                 std::uint32_t flags) const {
    using E = detail::Endpoint<F>;
    send_named(state, view, detail::endpoint_name<F>(), signature_of<typename E::Result, typename E::Arguments>(),
               arguments, flags);
  }
  void send_named(const std::shared_ptr<detail::CallState>& state, const View& view, const std::string& endpoint,
                  const std::string& signature, const std::string& arguments, std::uint32_t flags) const {
    const std::vector<monarch_ranks_v1> ranks = view.ranks();
    monarch_call_v1 call{};
    call.flags = flags;
    call.mesh = view.mesh().c_str();
    call.actor = actor_.c_str();
    call.endpoint = endpoint.c_str();
    call.signature = signature.c_str();
    call.ranks = ranks.data();
    call.ranks_count = ranks.size();
    call.arguments = {arguments.data(), arguments.size()};
    // 0 would be none.
    call.deadline_ns = deadline_ ? std::max<std::int64_t>(deadline_->count(), 1) : 0;
    detail::CallState::send(state, call);
  }
  template <class R, class Parameters, class M, class... A>
  auto call_member(M member, A&&... arguments) const {
    const std::string* const name = detail::Members<C>::name_of(member);
    if (name == nullptr) {
      throw BadArguments(
          "this plugin does not say what that endpoint is called: write call<&Class::member>(…), or have "
          "MONARCH_ACTOR of the class in it");
    }
    const auto state = detail::CallState::of(detail::host_here(), view_.mesh(), 1);
    send_named(state, view_, *name, signature_of<std::decay_t<R>, Parameters>(),
               detail::packed<Parameters>(std::forward<A>(arguments)...), 0);
    return Future<std::decay_t<R>>(state);
  }

  std::string actor_;
  View view_;
  std::optional<Nanoseconds> deadline_;
  std::shared_ptr<detail::Turns> turns_ = std::make_shared<detail::Turns>();  // owners: the copies of this handle
};

// The one actor of this name in the job. Whoever asks first has it made, in the process of the controller, by a class
// that the controller's plugin has; `args` are its constructor's. RemoteError: it cannot be made, or is of another
// class. It is not moved or made again: with the controller's process it ends.
template <class C>
ActorMesh<C> named(const std::string& name, const Args& args = {}) {
  if (detail::being_made != nullptr) {
    throw Deadlock("named: not while an actor is made, since its maker would wait for itself");
  }
  const std::string& of = detail::class_name<C>();
  if (of.empty()) throw BadArguments("named: MONARCH_ACTOR of the class has to be in this plugin");
  const monarch_host_v1* const host = detail::host_here();
  constexpr const char* kMesh = "controller";
  monarch_place_v1 place{};
  place.struct_size = sizeof place;
  if (host->mesh(host, kMesh, &place) == 0) throw BadArguments("named: the job has no controller");
  std::vector<Dimension> dims;
  for (std::uint32_t i = 0; i < place.dim_count; ++i) {
    dims.push_back({.name = place.dim_names[i], .size = place.dim_sizes[i]});
  }
  const View view(kMesh, dims);
  const auto state = detail::CallState::of(host, kMesh, 1);
  const std::string arguments = codec::encode(std::tuple(name, of, codec::Bytes{args.encoded()}));
  const std::vector<monarch_ranks_v1> ranks = view.ranks();
  monarch_call_v1 call{};
  call.mesh = kMesh;
  call.actor = "monarch";
  call.endpoint = "make";
  call.signature = "*";
  call.ranks = ranks.data();
  call.ranks_count = ranks.size();
  call.arguments = {arguments.data(), arguments.size()};
  detail::CallState::send(state, call);
  FutureOne<void>(Future<void>(state)).get();
  return ActorMesh<C>(name, view);
}

}  // namespace MONARCH_INSIDE
}  // namespace monarch
