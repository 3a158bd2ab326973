#pragma once

// Actors: classes of a user whose objects live in ranks and whose members are called from elsewhere.
//
//   struct Greeter : monarch::Actor {
//     std::string say_hello(const std::string& text) { return "hello " + text; }
//   };
//   MONARCH_PLUGIN(MONARCH_ACTOR(Greeter, &Greeter::say_hello))
//
// A class is made by `Greeter()`, or by `Greeter(const monarch::Args&)` from what the spec gives it. It has one call at
// a time, in the order in which they came; an endpoint that is named as MONARCH_CONCURRENT(&Greeter::say_hello, 8) may
// overlap with itself, at most 8 at once, and with all others of the actor. What an endpoint throws goes to its caller,
// and the actor lives on. An endpoint whose first parameter is a monarch::Reply<T> answers later, from any thread; one
// that returns a monarch::Task<T> is a coroutine (monarch/task.hpp). An actor that has
// `void restore(const monarch::Context&)` is told by that, before it is called, that its rank had a process before. It
// is destroyed when its rank is told to end.
//
// Arguments and results are values that monarch/codec.hpp can write.
//
// Thread: an actor has one at a time for what is not concurrent.

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <monarch/plugin_v1.h>
#include <monarch/buffer.hpp>
#include <monarch/codec.hpp>
#include <monarch/host.hpp>
#include <monarch/mesh.hpp>
#include <monarch/pieces.hpp>
#include <monarch/signature.hpp>
#include <monarch/task.hpp>

namespace monarch {

class MONARCH_SEEN Actor;

inline namespace v1 MONARCH_INSIDE {

namespace detail {

inline thread_local const Context* being_made = nullptr;

// What a class is called, as MONARCH_ACTOR says; empty: it is in none of this plugin's.
template <class C>
std::string& class_name() {
  static std::string name;
  return name;
}

// What members of a class are called, as MONARCH_ACTOR says.
template <class C>
class Members {
 public:
  template <auto F>
  static void add(std::string_view name) {
    rows().push_back({std::string(name), [](const void* member, const std::type_info& type) {
                        using T = decltype(F);
                        return type == typeid(T) && *static_cast<const T*>(member) == F;
                      }});
  }
  template <class M>
  static const std::string* name_of(M member) {
    for (const Row& row : rows()) {
      if (row.is(&member, typeid(M))) return &row.name;
    }
    return nullptr;
  }

 private:
  struct Row {
    std::string name;
    bool (*is)(const void* member, const std::type_info& type);
  };
  static std::vector<Row>& rows() {
    static std::vector<Row> rows;
    return rows;
  }
};

inline std::string_view view_of(monarch_bytes_v1 bytes) {
  return bytes.data == nullptr ? std::string_view()
                               : std::string_view(static_cast<const char*>(bytes.data), bytes.size);
}

// "std::runtime_error"
inline std::string type_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                         &std::free);
  const std::string spelt = status == 0 ? name.get() : type.name();
  // What std::throw_with_nested makes of a type is that type to who threw it.
  constexpr std::string_view kNested = "std::_Nested_exception<";
  return spelt.starts_with(kNested) ? spelt.substr(kNested.size(), spelt.size() - kNested.size() - 1) : spelt;
}

template <class F>
struct Member;
template <class C, class R, class... P>
struct Member<R (C::*)(P...)> {
  using Class = C;
  using Result = R;
  using Parameters = std::tuple<std::decay_t<P>...>;
};
template <class C, class R, class... P>
struct Member<R (C::*)(P...) const> : Member<R (C::*)(P...)> {};
template <class C, class R, class... P>
struct Member<R (C::*)(P...) noexcept> : Member<R (C::*)(P...)> {};
template <class C, class R, class... P>
struct Member<R (C::*)(P...) const noexcept> : Member<R (C::*)(P...)> {};

// The name of a member, out of what the compiler calls this function.
template <auto F>
consteval std::string_view name_of() {
  std::string_view name = __PRETTY_FUNCTION__;
  constexpr std::string_view kBefore = "F = ";
  name = name.substr(name.find(kBefore) + kBefore.size());
#ifdef __clang__
  name = name.substr(0, name.rfind(']'));
#else
  name = name.substr(0, std::min(name.find(';'), name.rfind(']')));
#endif
  if (name.ends_with(')')) name.remove_suffix(1);
  return name.substr(name.rfind("::") + 2);
}

}  // namespace detail

// What the spec gives an actor or a controller: values by name.
class MONARCH_SEEN Args {
 public:
  Args() = default;
  // A MessagePack map with texts for keys. BadArguments where it is none.
  explicit Args(std::string_view map) {
    if (map.empty()) return;
    codec::Reader reader(map, codec::kValueLimits);
    const auto names = reader.map();
    bool whole = static_cast<bool>(names);
    for (std::size_t i = 0; whole && i < names.count(); ++i) {
      std::string name;
      whole = codec::read(reader, name);
      const std::size_t begin = map.size() - reader.remaining();
      whole = whole && reader.skip();
      if (whole) values_[name] = std::string(map.substr(begin, map.size() - reader.remaining() - begin));
    }
    if (!whole || !reader.at_end()) throw BadArguments("args are no map of names: " + reader.error().what);
  }

  template <class T>
  Args& set(const std::string& name, const T& value) {
    values_[name] = codec::encode(value);
    return *this;
  }
  // As the constructor takes it.
  std::string encoded() const {
    codec::Writer count;
    count.map(values_.size());
    std::string map = count.take();
    for (const auto& [name, value] : values_) map += codec::encode(name) + value;
    return map;
  }
  bool has(const std::string& name) const { return values_.contains(name); }
  template <class T>
  T get(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) throw BadArguments("args." + name + " is missing");
    codec::DecodeError error;
    if constexpr (std::is_same_v<T, float>) {  // a spec's numbers are doubles, of which few are floats
      return static_cast<float>(get<double>(name));
    } else {
      T value{};
      if (!codec::decode(found->second, value, error, codec::kValueLimits))
        throw BadArguments("args." + name + ": " + error.what);
      return value;
    }
  }
  template <class T>
  T get(const std::string& name, T otherwise) const {
    return has(name) ? get<T>(name) : otherwise;
  }

 private:
  std::map<std::string, std::string> values_;  // as MessagePack
};

// The answer to a call, given later, from any thread, once; copies are of the same answer. One that is dropped without
// an answer is an error for the caller, at once.
template <class T>
class MONARCH_SEEN Reply {
 public:
  Reply(const monarch_host_v1* host, monarch_delivery_v1* delivery)
      : answer_(std::make_shared<Answer>(host, delivery)) {}

  // False: it is answered already.
  bool set(const T& value) const {
    const codec::Writer written = detail::written_of(value);
    return answer_->end([&](const monarch_host_v1* host, monarch_delivery_v1* delivery) {
      detail::Pieces(*host, written).reply(*host, delivery);
    });
  }
  // What its caller gets as a RemoteError.
  bool fail(const std::string& text) const { return fail("monarch::Failure", text); }
  bool fail(const std::string& type, const std::string& text) const { return answer_->fail(type, text); }
  // Nobody waits for it any more.
  bool cancelled() const { return answer_->cancelled(); }

 private:
  // Owners: the copies of a Reply.
  class Answer {
   public:
    Answer(const monarch_host_v1* host, monarch_delivery_v1* delivery) : host_(host), delivery_(delivery) {}
    Answer(const Answer&) = delete;
    Answer& operator=(const Answer&) = delete;
    ~Answer() { (void)fail("monarch::ReplyDropped", "the endpoint let its Reply go without an answer"); }
    bool fail(const std::string& type, const std::string& text) {
      return end([&](const monarch_host_v1* host, monarch_delivery_v1* delivery) {
        host->fail(delivery, type.c_str(), text.c_str(), "");
      });
    }
    template <class Run>
    bool end(const Run& run) {
      const std::lock_guard lock(mutex_);
      if (delivery_ == nullptr) return false;
      run(host_, std::exchange(delivery_, nullptr));
      return true;
    }
    bool cancelled() {
      const std::lock_guard lock(mutex_);
      return delivery_ != nullptr && host_->is_cancelled(delivery_) != 0;
    }

   private:
    std::mutex mutex_;
    const monarch_host_v1* host_;
    monarch_delivery_v1* delivery_;  // the host's until it is answered
  };
  std::shared_ptr<Answer> answer_;
};
template <>
class MONARCH_SEEN Reply<void> : private Reply<std::monostate> {
 public:
  using Reply<std::monostate>::Reply;
  using Reply<std::monostate>::fail;
  using Reply<std::monostate>::cancelled;
  bool set() const { return Reply<std::monostate>::set({}); }
};

// An endpoint that may overlap with others; see MONARCH_CONCURRENT.
template <auto F>
struct Concurrent {
  std::uint32_t at_most = 1;
};

namespace detail {

template <class T>
struct IsReply : std::false_type {};
template <class T>
struct IsReply<Reply<T>> : std::true_type {
  using Value = T;
};

template <class Tuple>
struct Tail;
template <class First, class... Rest>
struct Tail<std::tuple<First, Rest...>> {
  using Type = std::tuple<Rest...>;
};

// What a member is as an endpoint, by its type.
template <class M>
struct EndpointOf {
  using Parameters = typename Member<M>::Parameters;
  static constexpr bool kLater = [] {
    if constexpr (std::tuple_size_v<Parameters> == 0) {
      return false;
    } else {
      return IsReply<std::tuple_element_t<0, Parameters>>::value;
    }
  }();
  static auto arguments() {
    if constexpr (kLater) {
      return std::type_identity<typename Tail<Parameters>::Type>{};
    } else {
      return std::type_identity<Parameters>{};
    }
  }
  static auto result() {
    if constexpr (kLater) {
      return std::type_identity<typename IsReply<std::tuple_element_t<0, Parameters>>::Value>{};
    } else {
      return std::type_identity<typename IsTask<std::decay_t<typename Member<M>::Result>>::Value>{};
    }
  }
  using Arguments = typename decltype(arguments())::type;
  using Result = typename decltype(result())::type;
};
template <auto F>
using Endpoint = EndpointOf<std::remove_const_t<decltype(F)>>;

// One after the other, so that it can be said which of them it is.
template <class Tuple, std::size_t... I>
Tuple read_arguments(codec::Reader& reader, std::index_sequence<I...>) {
  Tuple values{};
  std::size_t wrong = sizeof...(I);
  (void)((codec::read(reader, std::get<I>(values)) || (wrong = I, false)) && ...);
  if (wrong < sizeof...(I)) throw BadArguments("argument " + std::to_string(wrong + 1) + ": " + reader.error().what);
  return values;
}

template <class Tuple>
Tuple arguments_of(std::string_view bytes, const HeldArguments& held) {
  codec::Reader reader(bytes, codec::kValueLimits, held.keeper());
  const auto list = reader.array();
  if (!list) throw BadArguments("the arguments are no list: " + reader.error().what);
  if (list.count() != std::tuple_size_v<Tuple>) {
    throw BadArguments(std::to_string(list.count()) + " arguments for " + std::to_string(std::tuple_size_v<Tuple>));
  }
  Tuple values = read_arguments<Tuple>(reader, std::make_index_sequence<std::tuple_size_v<Tuple>>());
  if (!reader.at_end()) throw BadArguments("bytes follow the arguments");
  return values;
}

// What an exception says of itself, with those that it was thrown for (std::throw_with_nested).
struct Words {
  std::string type;
  std::string text;
};
inline Words present_words(unsigned depth);
template <class E>
void add_cause(Words& words, const E& error, unsigned depth) {
  constexpr unsigned kCauses = 32;
  if (depth == kCauses) return;
  try {
    std::rethrow_if_nested(error);
  } catch (...) {
    const Words cause = present_words(depth + 1);
    words.text += "; caused by " + cause.type + ": " + cause.text;
  }
}
// Of the exception that is being handled.
inline Words present_words(unsigned depth = 0) {
  const auto text_of = [](const char* text) { return std::string(text == nullptr ? "" : text); };
  try {
    throw;
  } catch (const std::exception& error) {
    Words words{type_name(typeid(error)), text_of(error.what())};
    add_cause(words, error, depth);
    return words;
  } catch (const std::string& text) {
    return {"std::string", text};
  } catch (const char* text) {
    return {"char const*", text_of(text)};
  } catch (const std::nested_exception& error) {
    Words words{type_name(typeid(error)), "something that is no std::exception"};
    add_cause(words, error, depth);
    return words;
  } catch (...) {
    const std::type_info* const type = abi::__cxa_current_exception_type();
    return {type != nullptr ? type_name(*type) : std::string("?"), "something that is no std::exception"};
  }
}

// `let_out`: told the type and the text of what was thrown.
template <class Run, class LetOut>
void guarded(const Run& run, const LetOut& let_out) {
  try {
    run();
  } catch (...) {
    const Words words = present_words();
    let_out(words.type, words.text);
  }
}

// What a member gives, or the coroutine that it is.
template <class M, class C, class... A>
decltype(auto) finished(M member, C& actor, A&&... arguments) {
  if constexpr (IsTask<std::decay_t<typename Member<M>::Result>>::value) {
    return (actor.*member)(std::forward<A>(arguments)...).run();
  } else {
    return (actor.*member)(std::forward<A>(arguments)...);
  }
}

// What is replied is not copied where the member gives a reference. Else the arguments are gone by then.
template <auto F, class C, class Reply>
void run_and_reply(C& actor, std::string_view arguments, const HeldArguments& held, const Reply& reply) {
  using Arguments = typename Endpoint<F>::Arguments;
  const auto run = [&actor](Arguments& values) -> decltype(auto) {
    return std::apply([&actor](auto&... each) -> decltype(auto) { return finished(F, actor, std::move(each)...); },
                      values);
  };
  using Given = decltype(run(std::declval<Arguments&>()));
  if constexpr (std::is_reference_v<Given>) {
    auto values = arguments_of<Arguments>(arguments, held);
    reply(run(values));
  } else if constexpr (std::is_void_v<Given>) {
    {
      auto values = arguments_of<Arguments>(arguments, held);
      run(values);
    }
    reply(std::monostate());
  } else {
    const auto given = [&] {
      auto values = arguments_of<Arguments>(arguments, held);
      return run(values);
    }();
    reply(given);
  }
}

template <auto F, class C>
void invoke(void* self, monarch_bytes_v1 arguments, const monarch_host_v1* host, monarch_delivery_v1* delivery) {
  using E = Endpoint<F>;
  using Result = typename E::Result;
  C& actor = *static_cast<C*>(self);
  const HeldArguments held{host, delivery};
  if constexpr (E::kLater) {
    const Reply<Result> later(host, delivery);
    guarded(
        [&] {
          auto values = arguments_of<typename E::Arguments>(view_of(arguments), held);
          std::apply([&](auto&... each) { (actor.*F)(later, std::move(each)...); }, values);
        },
        [&](const std::string& type, const std::string& text) { later.fail(type, text); });
  } else {
    bool replied = false;
    const auto reply = [&](const auto& value) {
      const codec::Writer written = written_of(value);
      replied = true;
      Pieces(*host, written).reply(*host, delivery);
    };
    guarded([&] { run_and_reply<F>(actor, view_of(arguments), held, reply); },
            [&](const std::string& type, const std::string& text) {
              if (!replied) host->fail(delivery, type.c_str(), text.c_str(), "");
            });
  }
}

}  // namespace detail
}  // namespace MONARCH_INSIDE

// What an actor derives from. It has no virtual function; nobody deletes an actor through it.
class MONARCH_SEEN Actor {
 public:
  // Also within a constructor.
  const Context& context() const { return context_; }

 protected:
  Actor() : context_(detail::being_made != nullptr ? *detail::being_made : Context()) {}
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;
  ~Actor() = default;

 private:
  Context context_;
};

inline namespace v1 MONARCH_INSIDE {

namespace detail {

template <class C>
C* make(const Context& context, const Args& args) {
  being_made = &context;
  struct Done {
    ~Done() { being_made = nullptr; }
  } done;
  if constexpr (std::is_constructible_v<C, const Args&>) {
    return new C(args);
  } else {
    static_assert(std::is_default_constructible_v<C>, "an actor is made by C() or by C(const monarch::Args&)");
    return new C();
  }
}

template <class C>
void* create(const monarch_host_v1* host, const monarch_place_v1* place, char* why, std::size_t why_size) {
  known_host() = host;
  std::unique_ptr<C> made;
  guarded(
      [&] {
        const Context context = context_of(*place);
        made.reset(make<C>(context, Args(view_of(place->args))));
        if constexpr (requires { made->restore(context); }) {
          if (context.generation > 1) made->restore(context);
        }
      },
      [&](const std::string& type, const std::string& text) {
        made.reset();
        (void)std::snprintf(why, why_size, "%s: %s", type.c_str(), text.c_str());
      });
  return made.release();
}

// The member of what is named in MONARCH_ACTOR: itself, or the one that may overlap.
template <auto Name>
struct EndpointName {
  static constexpr std::uint32_t kAtMost = 0;
  static constexpr auto kMember = Name;
};
template <auto F>
constexpr auto member_of(Concurrent<F> /*concurrent*/) {
  return F;
}
template <auto Name>
requires requires { member_of(Name); }
struct EndpointName<Name> {
  static constexpr std::uint32_t kAtMost = Name.at_most;
  static constexpr auto kMember = member_of(Name);
};

template <class C, auto... Names>
const monarch_class_v1* describe(const char* name) {
  static_assert(std::derived_from<C, Actor>, "an actor derives from monarch::Actor");
  static_assert(
      (std::derived_from<C, typename Member<std::remove_const_t<decltype(EndpointName<Names>::kMember)>>::Class> &&
       ...),
      "an endpoint is a member of the actor, or of what it derives from");
  class_name<C>() = name;
  if (static bool named = false; !std::exchange(named, true)) {
    (Members<C>::template add<EndpointName<Names>::kMember>(name_of<EndpointName<Names>::kMember>()), ...);
  }
  static const std::array<std::string, sizeof...(Names)> names{std::string(name_of<EndpointName<Names>::kMember>())...};
  static const std::vector<monarch_endpoint_v1> endpoints = [] {
    std::vector<monarch_endpoint_v1> rows;
    (rows.push_back({.struct_size = sizeof(monarch_endpoint_v1),
                     .at_most = EndpointName<Names>::kAtMost,
                     .name = names[rows.size()].c_str(),
                     .signature = signature_of<typename Endpoint<EndpointName<Names>::kMember>::Result,
                                               typename Endpoint<EndpointName<Names>::kMember>::Arguments>()
                                      .c_str(),
                     .invoke = &invoke<EndpointName<Names>::kMember, C>}),
     ...);
    return rows;
  }();
  static const monarch_class_v1 described{.struct_size = sizeof described,
                                          .endpoint_count = static_cast<std::uint32_t>(endpoints.size()),
                                          .name = name,
                                          .endpoints = endpoints.data(),
                                          .create = &create<C>,
                                          .destroy = [](void* actor) { delete static_cast<C*>(actor); }};
  return &described;
}

// What this plugin has.
struct Registry {
  std::vector<const monarch_class_v1*> classes;
  std::vector<const monarch_controller_v1*> controllers;
  bool add(std::initializer_list<const monarch_class_v1*> more) {
    classes.insert(classes.end(), more);
    return true;
  }
  bool add_controller(const monarch_controller_v1* controller) {
    controllers.push_back(controller);
    return true;
  }
  static Registry& here() {
    static Registry registry;
    return registry;
  }
};

// WARNING: a static object within an exported inline function is STB_GNU_UNIQUE: all plugins of a process would share
// one. So the exported function has none, and calls this.
inline const monarch_plugin_v1* this_plugin() {
  static monarch_plugin_v1 plugin;
  const Registry& has = Registry::here();
  plugin = {.struct_size = sizeof plugin,
            .abi = MONARCH_ABI_V1,
            .class_count = has.classes.size(),
            .classes = has.classes.data(),
            .controller_count = has.controllers.size(),
            .controllers = has.controllers.data()};
  return &plugin;
}

}  // namespace detail
}  // namespace MONARCH_INSIDE
}  // namespace monarch

// The one function that a plugin exports.
extern "C" __attribute__((visibility("default"), used)) inline const monarch_plugin_v1* monarch_plugin_v1_get(void) {
  return ::monarch::detail::this_plugin();
}

// MONARCH_ACTOR(Class, &Class::endpoint, …), within MONARCH_PLUGIN(…), which may stand as often as one likes.
#define MONARCH_ACTOR(Class, ...) ::monarch::detail::describe<Class __VA_OPT__(, ) __VA_ARGS__>(#Class)
#define MONARCH_CONCURRENT(endpoint, most) \
  ::monarch::Concurrent<endpoint> { most }
#define MONARCH_PLUGIN(...) MONARCH_PLUGIN_ONCE(__COUNTER__, __VA_ARGS__)
#define MONARCH_PLUGIN_ONCE(number, ...) MONARCH_PLUGIN_NAMED(number, __VA_ARGS__)
#define MONARCH_PLUGIN_NAMED(number, ...)                                                                       \
  namespace {                                                                                                   \
  [[maybe_unused]] const bool monarch_plugin_##number = ::monarch::detail::Registry::here().add({__VA_ARGS__}); \
  }
