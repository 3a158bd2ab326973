#pragma once

// Json: a JSON value, with objects in the order in which they were written. For what people and programs read (output
// of --json, endpoint.json, verdict.json, events); the wire does not use it.
//
// Thread: a value, as safe as any.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "transport/base/result.h"

namespace monarch {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  // Implicit on purpose: `{"v", 1}` reads as what it is. Signed integers are kept as int64, unsigned as uint64.
  Json() = default;
  Json(std::nullptr_t) {}                                       // NOLINT(google-explicit-constructor)
  Json(bool value) : value_(value) {}                           // NOLINT(google-explicit-constructor)
  Json(double value) : value_(value) {}                         // NOLINT(google-explicit-constructor)
  Json(std::string value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Json(std::string_view value) : value_(std::string(value)) {}  // NOLINT(google-explicit-constructor)
  Json(const char* value) : value_(std::string(value)) {}       // NOLINT(google-explicit-constructor)
  template <std::signed_integral Int>
  Json(Int value) : value_(static_cast<std::int64_t>(value)) {}  // NOLINT(google-explicit-constructor)
  template <std::unsigned_integral Int>
  requires(!std::same_as<Int, bool>) Json(Int value)  // NOLINT(google-explicit-constructor)
      : value_(static_cast<std::uint64_t>(value)) {}
  template <class Pointer>
  Json(Pointer*) = delete;  // would be a bool

  static Json array(std::vector<Json> items = {});
  // A key that is written twice keeps its first place and its last value.
  static Json object(std::initializer_list<Member> members = {});
  // The keys are the caller's to keep distinct.
  static Json from_members(Object members);

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // Nothing if the value is of another type or does not fit. A whole number is also a double.
  std::optional<bool> as_bool() const;
  std::optional<std::int64_t> as_int64() const;
  std::optional<std::uint64_t> as_uint64() const;
  std::optional<double> as_double() const;
  std::optional<std::string> as_string() const;

  // Members and items; empty for any other type.
  const Object& members() const;
  const Array& items() const;
  // The member called `key`, or nullptr.
  const Json* find(std::string_view key) const;

  // The typed member called `key`: find() and as_…() in one.
  std::optional<bool> get_bool(std::string_view key) const;
  std::optional<std::int64_t> get_int64(std::string_view key) const;
  std::optional<std::uint64_t> get_uint64(std::string_view key) const;
  std::optional<double> get_double(std::string_view key) const;
  std::optional<std::string> get_string(std::string_view key) const;

  // On an object (null becomes an empty one): replaces the member in place or appends it.
  Json& set(std::string key, Json value);
  // On an array (null becomes an empty one).
  Json& append(Json value);

  bool operator==(const Json&) const = default;

 private:
  using Value = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object>;
  friend void append_json(std::string& out, const Json& value);

  Value value_;
};

// One line without blanks. Bytes that are not UTF-8 become U+FFFD; what could steer a terminal or end a line (control
// characters, DEL, C1, bidirectional overrides, U+2028) is written as \uNNNN. A double that is no number is null.
std::string to_json(const Json& value);

struct JsonLimits {
  std::size_t bytes = 1U << 20U;
  std::size_t depth = 32;
};

// kInvalid with the offset: wrong syntax, bad UTF-8, a duplicate key, more than the limits, anything after the value.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});

}  // namespace monarch
