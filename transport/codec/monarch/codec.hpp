#pragma once

// codec: C++ values as MessagePack. Structs are declared once by MONARCH_FIELDS and travel as arrays of their fields; a
// decoder takes and ignores further elements at the end of such an array (a newer peer's fields) and misses none of its
// own. Decoding is total and strict: trailing bytes, a number out of range, a duplicate key are errors; a longer form
// of a number or length than needed is not.
//
//   bool integers float double       as they are, range-checked      std::array pair tuple  array of that length
//   std::string                      str                              std::map              map, keys unique
//   Bytes, vector<uint8_t>           bin                              std::optional         nil or the value
//   std::vector<T>                   array                            std::variant          [index, value]
//   enum                             its number, up to monarch_enum_max(E) if that is found by lookup
//   anything else                    codec_write(Writer&, const T&) and bool codec_read(Reader&, T&), found by lookup
//
// Thread: pure functions.

#include <array>
#include <cmath>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "monarch/fields.hpp"
#include "monarch/msgpack.hpp"

namespace monarch {
namespace codec MONARCH_INSIDE {

// Bytes that are not text.
struct MONARCH_SEEN Bytes {
  std::string data;
  auto operator<=>(const Bytes&) const = default;
};

// Throws std::length_error for what nobody would read: nested too deeply, a text beyond 4 GiB.
template <class T>
std::string encode(const T& value);

// False with the reason in `error`; `value` is then partly overwritten.
template <class T>
bool decode(std::string_view input, T& value, DecodeError& error, DecodeLimits limits = {}, Keeper keeper = {});

template <class T>
void write(Writer& writer, const T& value);
template <class T>
bool read(Reader& reader, T& value);

namespace detail {

template <class T>
concept Customized = requires(Writer& writer, Reader& reader, const T& in, T& out) {
  codec_write(writer, in);
  { codec_read(reader, out) } -> std::same_as<bool>;
};
struct AnyFields {
  bool operator()(const auto&... fields) const;
};
template <class T>
concept FieldsOutside = requires(const T& value, std::type_identity<T> type, AnyFields use) {
  monarch_codec_fields(value, type, use);
};
template <class T>
concept FieldsInside = requires(const T& value, AnyFields use) {
  value.monarch_codec_fields(use);
};
// What a list has so many of that it is bounded by its bytes.
template <class T>
concept Number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
template <class T>
concept BoundedEnum = requires(T value) {
  monarch_enum_max(value);
};

// Those at the end of a T that peers of before do not say.
template <class T>
constexpr std::size_t added_fields() {
  if constexpr (requires { monarch_codec_added(std::type_identity<T>{}); }) {
    return monarch_codec_added(std::type_identity<T>{});
  }
  return 0;
}

// use(a, b, ...) with the fields that MONARCH_FIELDS names; returns what it returns, a bool.
template <class T, class Use>
bool with_fields(T& value, const Use& use) {
  if constexpr (FieldsInside<std::remove_const_t<T>>) {
    return value.monarch_codec_fields(use);
  } else {
    return monarch_codec_fields(value, std::type_identity<std::remove_const_t<T>>{}, use);
  }
}

template <class T>
bool read_integer(Reader& reader, T& value) {
  Integer integer;
  if (!reader.integer(integer)) return false;
  if (integer.negative) {
    const auto number = static_cast<std::int64_t>(integer.bits);
    if (!std::is_signed_v<T> || number < static_cast<std::int64_t>(std::numeric_limits<T>::min())) {
      return reader.fail("an integer is out of range");
    }
  } else if (integer.bits > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) {
    return reader.fail("an integer is out of range");
  }
  value = static_cast<T>(integer.bits);
  return true;
}

template <class T>
bool read_real(Reader& reader, T& value) {
  double number = 0;
  if (!reader.real(number)) return false;
  if constexpr (std::is_same_v<T, float>) {
    const bool finite = std::isfinite(number);
    if (finite && (std::fabs(number) > static_cast<double>(std::numeric_limits<float>::max()) ||
                   static_cast<double>(static_cast<float>(number)) != number)) {
      return reader.fail("a number has no exact value as a float");
    }
  }
  value = static_cast<T>(number);
  return true;
}

template <class E>
bool read_enum(Reader& reader, E& value) {
  std::underlying_type_t<E> number{};
  if (!codec::read(reader, number)) return false;
  if constexpr (BoundedEnum<E>) {
    bool inside = number <= static_cast<std::underlying_type_t<E>>(monarch_enum_max(E{}));
    if constexpr (std::is_signed_v<std::underlying_type_t<E>>) inside = inside && number >= 0;
    if (!inside) return reader.fail("an enumerator is out of range");
  }
  value = static_cast<E>(number);
  return true;
}

inline bool read_text(Reader& reader, std::string& value) {
  std::string_view view;
  if (!reader.string(view)) return false;
  value.assign(view);
  return true;
}

inline bool read_text(Reader& reader, Bytes& value) {
  std::string_view view;
  if (!reader.binary(view)) return false;
  value.data.assign(view);
  return true;
}

// True: an array of just so many items.
inline bool has_exactly(Reader& reader, const Reader::Inside& array, std::size_t wanted) {
  if (!array) return false;
  return array.count() == wanted || reader.fail("an array has another length");
}

template <class... Each>
bool write_each(Writer& writer, const Each&... values) {
  const auto array = writer.array(sizeof...(values));
  (codec::write(writer, values), ...);
  return true;
}

template <class... Each>
bool read_each(Reader& reader, Each&... values) {
  const auto array = reader.array();
  return has_exactly(reader, array, sizeof...(values)) && (codec::read(reader, values) && ...);
}

// `added`: so many of them, at the end, may be missing.
template <class... Fields>
bool read_fields(Reader& reader, std::size_t added, Fields&... fields) {
  const auto array = reader.array();
  if (!array) return false;
  if (array.count() + added < sizeof...(fields)) return reader.fail("a struct misses fields");
  std::size_t left = array.count();
  [[maybe_unused]] const auto read_one = [&](auto& field) { return left == 0 || (--left, codec::read(reader, field)); };
  if (!(read_one(fields) && ...)) return false;
  for (std::size_t i = sizeof...(fields); i < array.count(); ++i) {
    if (!reader.skip()) return false;
  }
  return true;
}

// The class templates of the standard library, one specialization each.
template <class T>
struct Standard {
  static_assert(!std::is_same_v<T, T>, "monarch: this type needs MONARCH_FIELDS, or codec_write and codec_read");
};

template <class T>
struct Standard<std::vector<T>> {
  static void write(Writer& writer, const std::vector<T>& values) {
    const auto array = writer.array(values.size());
    if constexpr (Number<T>) writer.reserve(values.size() * (std::is_floating_point_v<T> ? 1 + sizeof(T) : 1));
    for (const T& value : values) codec::write(writer, value);
  }
  static bool read(Reader& reader, std::vector<T>& values) {
    values.clear();
    const auto array = Number<T> ? reader.array_of_numbers() : reader.array();
    if (!array) return false;
    if constexpr (Number<T>) values.reserve(array.count());  // others grow with the items that are really there
    for (std::size_t i = 0; i < array.count(); ++i) {
      T value{};
      if (!codec::read(reader, value)) return false;
      values.push_back(std::move(value));
    }
    return true;
  }
};

template <>
struct Standard<std::vector<std::uint8_t>> {
  static void write(Writer& writer, const std::vector<std::uint8_t>& bytes) {
    writer.binary(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  static bool read(Reader& reader, std::vector<std::uint8_t>& bytes) {
    std::string_view view;
    if (!reader.binary(view)) return false;
    bytes.assign(view.begin(), view.end());
    return true;
  }
};

template <class T, std::size_t N>
struct Standard<std::array<T, N>> {
  static void write(Writer& writer, const std::array<T, N>& values) {
    const auto array = writer.array(N);
    for (const T& value : values) codec::write(writer, value);
  }
  static bool read(Reader& reader, std::array<T, N>& values) {
    const auto array = Number<T> ? reader.array_of_numbers() : reader.array();
    if (!has_exactly(reader, array, N)) return false;
    for (T& value : values) {
      if (!codec::read(reader, value)) return false;
    }
    return true;
  }
};

template <class... T>
struct Standard<std::tuple<T...>> {
  static void write(Writer& writer, const std::tuple<T...>& values) {
    std::apply([&writer](const T&... each) { write_each(writer, each...); }, values);
  }
  static bool read(Reader& reader, std::tuple<T...>& values) {
    return std::apply([&reader](T&... each) { return read_each(reader, each...); }, values);
  }
};

template <class A, class B>
struct Standard<std::pair<A, B>> {
  static void write(Writer& writer, const std::pair<A, B>& value) { write_each(writer, value.first, value.second); }
  static bool read(Reader& reader, std::pair<A, B>& value) { return read_each(reader, value.first, value.second); }
};

template <class K, class T>
struct Standard<std::map<K, T>> {
  static void write(Writer& writer, const std::map<K, T>& values) {
    const auto map = writer.map(values.size());
    for (const auto& [key, value] : values) {
      codec::write(writer, key);
      codec::write(writer, value);
    }
  }
  static bool read(Reader& reader, std::map<K, T>& values) {
    values.clear();
    const auto map = reader.map();
    if (!map) return false;
    for (std::size_t i = 0; i < map.count(); ++i) {
      K key{};
      T value{};
      if (!codec::read(reader, key) || !codec::read(reader, value)) return false;
      if (!values.emplace(std::move(key), std::move(value)).second) return reader.fail("a key is there twice");
    }
    return true;
  }
};

template <class T>
struct Standard<std::optional<T>> {
  static void write(Writer& writer, const std::optional<T>& value) {
    if (value) return codec::write(writer, *value);
    writer.nil();
  }
  static bool read(Reader& reader, std::optional<T>& value) {
    value.reset();
    return reader.next_is_nil() ? reader.nil() : codec::read(reader, value.emplace());
  }
};
template <class T>
struct Standard<std::optional<std::optional<T>>> {
  static_assert(!std::is_same_v<T, T>, "monarch: one nil cannot say which optional is empty");
};
template <>
struct Standard<std::optional<std::monostate>>;  // not defined, for the same reason

template <>
struct Standard<std::monostate> {
  static void write(Writer& writer, std::monostate /*nothing*/) { writer.nil(); }
  static bool read(Reader& reader, std::monostate& /*nothing*/) { return reader.nil(); }
};

template <class... T>
struct Standard<std::variant<T...>> {
  using Variant = std::variant<T...>;

  static void write(Writer& writer, const Variant& value) {
    const auto array = writer.array(2);
    writer.unsigned_integer(value.index());
    std::visit([&writer](const auto& held) { codec::write(writer, held); }, value);
  }
  static bool read(Reader& reader, Variant& value) {
    std::size_t index = 0;
    const auto array = reader.array();
    if (!has_exactly(reader, array, 2) || !read_integer(reader, index)) return false;
    if (index >= sizeof...(T)) return reader.fail("a variant has no such alternative");
    return read_alternative(reader, value, index, std::index_sequence_for<T...>{});
  }

 private:
  template <std::size_t... I>
  static bool read_alternative(Reader& reader, Variant& value, std::size_t index, std::index_sequence<I...> /*all*/) {
    bool good = false;
    (void)((I == index && (good = codec::read(reader, value.template emplace<I>()), true)) || ...);
    return good;
  }
};

}  // namespace detail

template <class T>
void write(Writer& writer, const T& value) {
  if constexpr (detail::Customized<T>) {
    const Writer::Copying what_it_makes(writer);
    codec_write(writer, value);
  } else if constexpr (detail::FieldsInside<T> || detail::FieldsOutside<T>) {
    detail::with_fields(value, [&writer](const auto&... each) { return detail::write_each(writer, each...); });
  } else if constexpr (std::is_same_v<T, bool>) {
    writer.boolean(value);
  } else if constexpr (std::is_enum_v<T>) {
    write(writer, static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    writer.signed_integer(value);
  } else if constexpr (std::is_integral_v<T>) {
    writer.unsigned_integer(value);
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    writer.real(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    writer.string(value);
  } else if constexpr (std::is_same_v<T, Bytes>) {
    writer.binary(value.data);
  } else {
    detail::Standard<T>::write(writer, value);
  }
}

template <class T>
bool read(Reader& reader, T& value) {
  if constexpr (detail::Customized<T>) {
    return codec_read(reader, value);
  } else if constexpr (detail::FieldsInside<T> || detail::FieldsOutside<T>) {
    return detail::with_fields(
        value, [&reader](auto&... each) { return detail::read_fields(reader, detail::added_fields<T>(), each...); });
  } else if constexpr (std::is_same_v<T, bool>) {
    return reader.boolean(value);
  } else if constexpr (std::is_enum_v<T>) {
    return detail::read_enum(reader, value);
  } else if constexpr (std::is_integral_v<T>) {
    return detail::read_integer(reader, value);
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    return detail::read_real(reader, value);
  } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, Bytes>) {
    return detail::read_text(reader, value);
  } else {
    return detail::Standard<T>::read(reader, value);
  }
}

template <class T>
std::string encode(const T& value) {
  Writer writer;
  write(writer, value);
  return writer.take();
}

template <class T>
bool decode(std::string_view input, T& value, DecodeError& error, DecodeLimits limits, Keeper keeper) {
  Reader reader(input, limits, keeper);
  if (read(reader, value) && (reader.at_end() || reader.fail("bytes follow the value"))) return true;
  error = reader.error();
  return false;
}

}  // namespace MONARCH_INSIDE
}  // namespace monarch
