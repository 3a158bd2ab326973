#pragma once

// What an endpoint takes and gives, as a text that two compilers, and two languages, spell alike: "si->[f]" takes a
// text and an integer and gives a list of numbers. It names the shapes of values as MessagePack has them, no types of
// C++:
//
//   b bool   i integer or enum   f number   s text   y bytes   v nothing
//   [T] list   (TU) tuple of known length   <KT> map   ?T nothing or T   |TU| one of them   {TU} struct of these fields
//   @n the struct, list or map that was opened n levels above   c something that writes itself
//
// Thread: pure functions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <monarch/buffer.hpp>
#include <monarch/codec.hpp>

namespace monarch {

inline namespace v1 MONARCH_INSIDE {

namespace detail {

class SignatureText {
 public:
  template <class T>
  void add() {
    if constexpr (std::is_void_v<T>) {
      text_ += 'v';
    } else {
      add_value<T>();
    }
  }
  std::string take() { return std::move(text_); }

 private:
  // One for each type, whatever translation unit it is of.
  template <class T>
  static const void* key() {
    static constexpr char kKey = 0;
    return &kKey;
  }

  template <class T>
  void add_value() {
    if constexpr (std::is_same_v<T, bool>) {
      text_ += 'b';
    } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      text_ += 'i';
    } else if constexpr (std::is_floating_point_v<T>) {
      text_ += 'f';
    } else if constexpr (std::is_same_v<T, std::string>) {
      text_ += 's';
    } else if constexpr (std::is_same_v<T, codec::Bytes> || std::is_same_v<T, std::vector<std::uint8_t>> ||
                         std::is_same_v<T, Buffer>) {
      text_ += 'y';
    } else if constexpr (codec::detail::Customized<T>) {
      text_ += 'c';
    } else if constexpr (codec::detail::FieldsInside<T> || codec::detail::FieldsOutside<T>) {
      open<T>('{', [this] {
        const T value{};
        codec::detail::with_fields(value, [this](const auto&... each) {
          (this->add<std::decay_t<decltype(each)>>(), ...);
          return true;
        });
      });
    } else {
      add_standard(std::type_identity<T>{});
    }
  }

  // A type that is open already names itself: else one that holds a list of itself had no end.
  template <class T, class Inner>
  void open(char bracket, const Inner& inner) {
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (open_[i] != key<T>()) continue;
      text_ += '@';
      text_ += std::to_string(open_.size() - i);
      return;
    }
    open_.push_back(key<T>());
    text_ += bracket;
    inner();
    text_ += closing(bracket);
    open_.pop_back();
  }
  static char closing(char bracket) {
    switch (bracket) {
      case '{': return '}';
      case '[': return ']';
      case '<': return '>';
      case '(': return ')';
      default: return '|';
    }
  }

  template <class T>
  void add_standard(std::type_identity<std::vector<T>>) {
    open<std::vector<T>>('[', [this] { add<T>(); });
  }
  template <class T, std::size_t N>
  void add_standard(std::type_identity<std::array<T, N>>) {
    open<std::array<T, N>>('(', [this] {
      for (std::size_t i = 0; i < N; ++i) add<T>();
    });
  }
  template <class A, class B>
  void add_standard(std::type_identity<std::pair<A, B>>) {
    open<std::pair<A, B>>('(', [this] {
      add<A>();
      add<B>();
    });
  }
  template <class... T>
  void add_standard(std::type_identity<std::tuple<T...>>) {
    open<std::tuple<T...>>('(', [this] { (add<T>(), ...); });
  }
  template <class K, class T>
  void add_standard(std::type_identity<std::map<K, T>>) {
    open<std::map<K, T>>('<', [this] {
      add<K>();
      add<T>();
    });
  }
  template <class T>
  void add_standard(std::type_identity<std::optional<T>>) {
    text_ += '?';
    add<T>();
  }
  template <class... T>
  void add_standard(std::type_identity<std::variant<T...>>) {
    open<std::variant<T...>>('|', [this] { (add<T>(), ...); });
  }
  void add_standard(std::type_identity<std::monostate>) { text_ += 'v'; }

  std::string text_;
  std::vector<const void*> open_;
};

template <class Result, class Arguments>
struct SignatureOf;
template <class Result, class... Argument>
struct SignatureOf<Result, std::tuple<Argument...>> {
  static std::string text() {
    SignatureText text;
    (text.add<Argument>(), ...);
    SignatureText result;
    result.add<Result>();
    return text.take() + "->" + result.take();
  }
};

}  // namespace detail

// Of what takes these arguments and gives this result; made once.
template <class Result, class Arguments>
const std::string& signature_of() {
  static const std::string text = detail::SignatureOf<Result, Arguments>::text();
  return text;
}

}  // namespace MONARCH_INSIDE
}  // namespace monarch
