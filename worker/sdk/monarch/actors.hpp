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
//   …try_call…                                             Busy, where another would wait until a rank has less to do
//
// Each takes its member either way. A handle is a value: it may be copied, kept, and sent as an argument, with its
// within().
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
#include <monarch/pieces.hpp>
#include <monarch/sending.hpp>
#include <monarch/signature.hpp>

namespace monarch {
inline namespace v1 MONARCH_INSIDE {

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
  ActorMesh within(Patience deadline) const {
    ActorMesh mesh = *this;
    mesh.deadline_ns_ = deadline.is_for_ever() ? 0 : std::max<std::int64_t>(deadline.time().count(), 1);  // 0: none
    return mesh;
  }

  template <auto F, class... A>
  auto stream(A&&... arguments) const {
    return Stream<ResultOf<F>>(send<F>(view_, 0, std::forward<A>(arguments)...));
  }
  template <auto F, class... A>
  auto call(A&&... arguments) const {
    return Future<ResultOf<F>>(send<F>(view_, 0, std::forward<A>(arguments)...));
  }
  template <auto F, class... A>
  auto try_call(A&&... arguments) const {
    return Future<ResultOf<F>>(send<F>(view_, MONARCH_CALL_TRY, std::forward<A>(arguments)...));
  }
  template <auto F, class... A>
  auto call_one(A&&... arguments) const {
    need_one();
    return FutureOne<ResultOf<F>>(call<F>(std::forward<A>(arguments)...));
  }
  template <auto F, class... A>
  auto choose(A&&... arguments) const {
    const std::size_t place = take_turn();
    return had_turn(place, with(view_.only(place)).template call_one<F>(std::forward<A>(arguments)...));
  }
  template <auto F, class... A>
  void broadcast(A&&... arguments) const {
    count_failures(send<F>(view_, MONARCH_CALL_QUIET, std::forward<A>(arguments)...), detail::endpoint_name<F>());
  }
  // Until each rank of the view has an actor that can be called: it is made, and was not lost meanwhile. NotYet after
  // `within`, with what is known of one that has none.
  void ready(Patience within) const {
    const auto until = detail::moment_in(within.time());
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
    return folded<ResultOf<F>>(send<F>(view_, 0, std::forward<A>(arguments)...), std::move(start), op);
  }
  template <auto F, class A>
  auto scatter(const std::vector<A>& each) const {
    const auto send = [&self = *this](const auto& state, const View& one, const A& argument) {
      self.template send_part<F>(state, one, 0, argument);
    };
    return Future<ResultOf<F>>(sent_to_each(each, send));
  }

  // By the member's value, as the first line of a program has it: MONARCH_ACTOR of the class has to be in this plugin.
  template <detail::IsMember M, class... A>
  auto stream(M member, A&&... arguments) const {
    return Stream<ResultOfMember<M>>(send(member, view_, 0, std::forward<A>(arguments)...));
  }
  template <detail::IsMember M, class... A>
  auto call(M member, A&&... arguments) const {
    return Future<ResultOfMember<M>>(send(member, view_, 0, std::forward<A>(arguments)...));
  }
  template <detail::IsMember M, class... A>
  auto try_call(M member, A&&... arguments) const {
    return Future<ResultOfMember<M>>(send(member, view_, MONARCH_CALL_TRY, std::forward<A>(arguments)...));
  }
  template <detail::IsMember M, class... A>
  auto call_one(M member, A&&... arguments) const {
    need_one();
    return FutureOne<ResultOfMember<M>>(call(member, std::forward<A>(arguments)...));
  }
  template <detail::IsMember M, class... A>
  auto choose(M member, A&&... arguments) const {
    const std::size_t place = take_turn();
    return had_turn(place, with(view_.only(place)).call_one(member, std::forward<A>(arguments)...));
  }
  template <detail::IsMember M, class... A>
  void broadcast(M member, A&&... arguments) const {
    count_failures(send(member, view_, MONARCH_CALL_QUIET, std::forward<A>(arguments)...), name_of(member));
  }
  template <detail::IsMember M, class T, class Op, class... A>
  T fold(M member, T start, Op op, A&&... arguments) const {
    return folded<ResultOfMember<M>>(send(member, view_, 0, std::forward<A>(arguments)...), std::move(start), op);
  }
  template <detail::IsMember M, class A>
  auto scatter(M member, const std::vector<A>& each) const {
    const auto send = [&self = *this, member](const auto& state, const View& one, const A& argument) {
      self.send_part(member, state, one, 0, argument);
    };
    return Future<ResultOfMember<M>>(sent_to_each(each, send));
  }

  bool operator==(const ActorMesh& other) const { return actor_ == other.actor_ && view_ == other.view_; }

  MONARCH_FIELDS_INSIDE(actor_, view_, deadline_ns_)

 private:
  template <auto F>
  using ResultOf = typename detail::Endpoint<F>::Result;
  template <class M>
  using ResultOfMember = typename detail::EndpointOf<M>::Result;

  ActorMesh with(View view) const {
    ActorMesh mesh(actor_, std::move(view));
    mesh.deadline_ns_ = deadline_ns_;
    return mesh;
  }
  void need_one() const {
    if (size() != 1) throw BadArguments("call_one: " + std::to_string(size()) + " ranks instead of one");
  }
  std::size_t take_turn() const {
    if (size() == 0) throw BadArguments("choose: there is no rank");
    return turns_->take(size());
  }
  template <class F>
  F had_turn(std::size_t place, F future) const {
    future.then([turns = turns_, place](const auto& /*ended*/) { turns->done(place); });
    return future;
  }
  void count_failures(const std::shared_ptr<detail::CallState>& call, const std::string& endpoint) const {
    call->then([call, what = actor_ + "." + endpoint] {
      for (const auto& ended : call->so_far()) {
        if (ended.kind != Kind::kValue) detail::BroadcastFailures::here().add(*call, ended, what);
      }
    });
  }
  // It needs all of them, and waits for them as it waits for one.
  template <class R, class T, class Op>
  static T folded(const std::shared_ptr<detail::CallState>& call, T start, Op& op) {
    while (auto answered = call->next(kForEver, true)) {
      start = op(std::move(start), detail::outcome_of<R>(*call, std::move(*answered)).get());
    }
    return start;
  }
  template <class A, class Send>
  std::shared_ptr<detail::CallState> sent_to_each(const std::vector<A>& each, const Send& send) const {
    if (each.size() != size()) {
      throw BadArguments("scatter: " + std::to_string(each.size()) + " arguments for " + std::to_string(size()) +
                         " ranks");
    }
    const auto state = detail::CallState::of(detail::host_here(), view_.mesh(), each.size());
    for (std::size_t place = 0; place < each.size(); ++place) send(state, view_.only(place), each[place]);
    return state;
  }

  struct Unready {
    std::vector<std::size_t> places;
    std::string why;  // of the first
  };
  // Asks each once.
  Unready unready(const std::vector<std::size_t>& places, Patience within) const {
    const ActorMesh asked = this->within(within);
    const detail::Packed<std::tuple<>> none;
    std::vector<std::shared_ptr<detail::CallState>> calls;
    for (const std::size_t place : places) {
      calls.push_back(detail::CallState::of(detail::host_here(), view_.mesh(), 1));
      asked.send_named(calls.back(), view_.only(place), "monarch.ready", "*", none.written(), 0);
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
  std::shared_ptr<detail::CallState> send(const View& view, std::uint32_t flags, A&&... arguments) const {
    auto state = detail::CallState::of(detail::host_here(), view.mesh(), 1);
    send_part<F>(state, view, flags, std::forward<A>(arguments)...);
    return state;
  }
  template <auto F, class... A>
  void send_part(const std::shared_ptr<detail::CallState>& state, const View& view, std::uint32_t flags,
                 A&&... arguments) const {
    using E = detail::Endpoint<F>;
    const detail::Packed<typename E::Arguments, A...> packed(std::forward<A>(arguments)...);
    send_named(state, view, detail::endpoint_name<F>(), signature_of<typename E::Result, typename E::Arguments>(),
               packed.written(), flags);
  }
  template <detail::IsMember M, class... A>
  std::shared_ptr<detail::CallState> send(M member, const View& view, std::uint32_t flags, A&&... arguments) const {
    auto state = detail::CallState::of(detail::host_here(), view.mesh(), 1);
    send_part(member, state, view, flags, std::forward<A>(arguments)...);
    return state;
  }
  template <detail::IsMember M, class... A>
  void send_part(M member, const std::shared_ptr<detail::CallState>& state, const View& view, std::uint32_t flags,
                 A&&... arguments) const {
    using E = detail::EndpointOf<M>;
    const detail::Packed<typename E::Arguments, A...> packed(std::forward<A>(arguments)...);
    send_named(state, view, name_of(member), signature_of<typename E::Result, typename E::Arguments>(),
               packed.written(), flags);
  }
  template <class M>
  static const std::string& name_of(M member) {
    const std::string* const name = detail::Members<C>::name_of(member);
    if (name != nullptr) return *name;
    throw BadArguments(
        "this plugin does not say what that endpoint is called: write call<&Class::member>(…), or have "
        "MONARCH_ACTOR of the class in it");
  }
  void send_named(const std::shared_ptr<detail::CallState>& state, const View& view, const std::string& endpoint,
                  const std::string& signature, const codec::Writer& arguments, std::uint32_t flags) const {
    const std::vector<monarch_ranks_v1> ranks = view.ranks();
    monarch_call_v1 call{};
    call.flags = flags;
    call.mesh = view.mesh().c_str();
    call.actor = actor_.c_str();
    call.endpoint = endpoint.c_str();
    call.signature = signature.c_str();
    call.ranks = ranks.data();
    call.ranks_count = ranks.size();
    const detail::Pieces pieces(*state->host(), arguments);
    pieces.put_into(call);
    call.deadline_ns = deadline_ns_;
    detail::CallState::send(state, call);
  }
  std::string actor_;
  View view_;
  std::int64_t deadline_ns_ = 0;                                              // none
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
  const detail::Packed<std::tuple<std::string, std::string, codec::Bytes>, const std::string&, const std::string&,
                       codec::Bytes>
      packed(name, of, codec::Bytes{args.encoded()});
  const detail::Pieces pieces(*host, packed.written());
  const std::vector<monarch_ranks_v1> ranks = view.ranks();
  monarch_call_v1 call{};
  call.mesh = kMesh;
  call.actor = "monarch";
  call.endpoint = "make";
  call.signature = "*";
  call.ranks = ranks.data();
  call.ranks_count = ranks.size();
  pieces.put_into(call);
  detail::CallState::send(state, call);
  FutureOne<void>(Future<void>(state)).get();
  return ActorMesh<C>(name, view);
}

}  // namespace MONARCH_INSIDE
}  // namespace monarch
