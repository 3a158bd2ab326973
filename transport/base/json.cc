#include "transport/base/json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "transport/base/text.h"

namespace monarch {

Json Json::array(std::vector<Json> items) {
  Json json;
  json.value_ = std::move(items);
  return json;
}

Json Json::object(std::initializer_list<Member> members) {
  Json json;
  json.value_ = Object{};
  for (const Member& member : members) json.set(member.first, member.second);
  return json;
}

Json Json::from_members(Object members) {
  Json json;
  json.value_ = std::move(members);
  return json;
}

std::optional<bool> Json::as_bool() const {
  const bool* value = std::get_if<bool>(&value_);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::int64_t> Json::as_int64() const {
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return *value;
  const auto* value = std::get_if<std::uint64_t>(&value_);
  if (value == nullptr || !std::in_range<std::int64_t>(*value)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::optional<std::uint64_t> Json::as_uint64() const {
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) return *value;
  const auto* value = std::get_if<std::int64_t>(&value_);
  if (value == nullptr || *value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::optional<double> Json::as_double() const {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*value);
  return std::nullopt;
}

std::optional<std::string> Json::as_string() const {
  const auto* value = std::get_if<std::string>(&value_);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

const Json::Object& Json::members() const {
  static const Object kNone;
  const auto* value = std::get_if<Object>(&value_);
  return value == nullptr ? kNone : *value;
}

const Json::Array& Json::items() const {
  static const Array kNone;
  const auto* value = std::get_if<Array>(&value_);
  return value == nullptr ? kNone : *value;
}

const Json* Json::find(std::string_view key) const {
  for (const Member& member : members()) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

std::optional<bool> Json::get_bool(std::string_view key) const {
  const Json* member = find(key);
  return member == nullptr ? std::nullopt : member->as_bool();
}

std::optional<std::int64_t> Json::get_int64(std::string_view key) const {
  const Json* member = find(key);
  return member == nullptr ? std::nullopt : member->as_int64();
}

std::optional<std::uint64_t> Json::get_uint64(std::string_view key) const {
  const Json* member = find(key);
  return member == nullptr ? std::nullopt : member->as_uint64();
}

std::optional<double> Json::get_double(std::string_view key) const {
  const Json* member = find(key);
  return member == nullptr ? std::nullopt : member->as_double();
}

std::optional<std::string> Json::get_string(std::string_view key) const {
  const Json* member = find(key);
  return member == nullptr ? std::nullopt : member->as_string();
}

Json& Json::set(std::string key, Json value) {
  if (is_null()) value_ = Object{};
  auto* members = std::get_if<Object>(&value_);
  MONARCH_ASSERT_BECAUSE(members != nullptr, "a member is set on an object");
  for (Member& member : *members) {
    if (member.first == key) {
      member.second = std::move(value);
      return *this;
    }
  }
  members->emplace_back(std::move(key), std::move(value));
  return *this;
}

Json& Json::append(Json value) {
  if (is_null()) value_ = Array{};
  auto* items = std::get_if<Array>(&value_);
  MONARCH_ASSERT_BECAUSE(items != nullptr, "an item is appended to an array");
  items->push_back(std::move(value));
  return *this;
}

namespace {

struct CodePoint {
  std::uint32_t value = 0xFFFD;
  std::size_t length = 1;
  bool valid = false;
};

// The code point at the front of `rest`, which is not empty.
CodePoint decode_utf8(std::string_view rest) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || rest.size() < length) return {};
  std::uint32_t point = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    point = (point << 6U) | (byte(i) & 0x3FU);
  }
  const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  if (overlong || surrogate || point > 0x10FFFF) return {};
  return {point, length, true};
}

bool must_escape(std::uint32_t point) {
  const bool control = point < 0x20 || (point >= 0x7F && point < 0xA0);
  // U+202A..202E and U+2066..2069 reorder what follows them on a terminal; U+2028 and U+2029 end lines.
  return control || (point >= 0x2028 && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
}

void append_unicode_escape(std::string& out, std::uint32_t point) {
  constexpr char kHex[] = "0123456789abcdef";
  out.append("\\u");
  for (unsigned shift = 16; shift > 0; shift -= 4) out.push_back(kHex[(point >> (shift - 4)) & 15U]);
}

void append_string(std::string& out, std::string_view raw) {
  out.push_back('"');
  for (std::size_t i = 0; i < raw.size();) {
    const CodePoint point = decode_utf8(raw.substr(i));
    switch (point.value) {
      case '"': out.append("\\\""); break;
      case '\\': out.append("\\\\"); break;
      case '\n': out.append("\\n"); break;
      case '\r': out.append("\\r"); break;
      case '\t': out.append("\\t"); break;
      default:
        if (!point.valid) {
          out.append("\xEF\xBF\xBD");
        } else if (must_escape(point.value)) {
          append_unicode_escape(out, point.value);
        } else {
          out.append(raw.substr(i, point.length));
        }
    }
    i += point.length;
  }
  out.push_back('"');
}

void append_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out.append("null");
    return;
  }
  const std::string digits = text(value);
  out.append(digits);
  if (digits.find_first_of(".e") == std::string::npos) out.append(".0");
}

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

}  // namespace

void append_json(std::string& out, const Json& value);

void append_json(std::string& out, const Json& value) {
  std::visit(Overloaded{
                 [&](std::monostate) { out.append("null"); },
                 [&](bool v) { out.append(v ? "true" : "false"); },
                 [&](std::int64_t v) { out.append(text(v)); },
                 [&](std::uint64_t v) { out.append(text(v)); },
                 [&](double v) { append_double(out, v); },
                 [&](const std::string& v) { append_string(out, v); },
                 [&](const Json::Array& items) {
                   out.push_back('[');
                   for (std::size_t i = 0; i < items.size(); ++i) {
                     if (i > 0) out.push_back(',');
                     append_json(out, items[i]);
                   }
                   out.push_back(']');
                 },
                 [&](const Json::Object& members) {
                   out.push_back('{');
                   for (std::size_t i = 0; i < members.size(); ++i) {
                     if (i > 0) out.push_back(',');
                     append_string(out, members[i].first);
                     out.push_back(':');
                     append_json(out, members[i].second);
                   }
                   out.push_back('}');
                 },
             },
             value.value_);
}

std::string to_json(const Json& value) {
  std::string out;
  append_json(out, value);
  return out;
}

namespace {

// Builds a Json from the parser's events. Each callback answers whether to go on.
class Builder final : public nlohmann::json_sax<nlohmann::ordered_json> {
 public:
  explicit Builder(std::size_t depth) : depth_limit_(depth) {}

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool number_integer(number_integer_t value) override { return add(Json(value)); }
  bool number_unsigned(number_unsigned_t value) override { return add(Json(value)); }
  bool number_float(number_float_t value, const string_t&) override { return add(Json(value)); }
  bool string(string_t& value) override { return add(Json(std::move(value))); }
  bool binary(binary_t&) override { return false; }  // JSON text has none
  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_object() override { return add(Json::from_members(close().members)); }
  bool end_array() override { return add(Json::array(close().items)); }
  bool key(string_t& key) override {
    if (!open_.back().keys.insert(key).second) return fail(text("duplicate key \"", printable(key), "\""));
    open_.back().key = std::move(key);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return fail(text("wrong syntax at byte ", position));
  }

  Json take() { return std::move(root_); }
  const std::string& why() const { return why_; }

 private:
  struct Level {
    bool is_array = false;
    Json::Array items;
    Json::Object members;
    std::string key;
    std::set<std::string> keys;
  };

  bool fail(std::string why) {
    why_ = std::move(why);
    return false;
  }
  bool add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Level& level = open_.back(); level.is_array) {
      level.items.push_back(std::move(value));
    } else {
      level.members.emplace_back(std::move(level.key), std::move(value));
    }
    return true;
  }
  bool open(bool is_array) {
    if (open_.size() >= depth_limit_) return fail(text("nested deeper than ", depth_limit_));
    open_.push_back({.is_array = is_array, .items = {}, .members = {}, .key = {}, .keys = {}});
    return true;
  }
  Level close() {
    Level level = std::move(open_.back());
    open_.pop_back();
    return level;
  }

  std::size_t depth_limit_;
  Json root_;
  std::vector<Level> open_;
  std::string why_;
};

}  // namespace

Result<Json> parse_json(std::string_view input, const JsonLimits& limits) {
  if (input.size() > limits.bytes) {
    return Error{ErrorCode::kInvalid, text("JSON of ", input.size(), " bytes is longer than ", limits.bytes)};
  }
  Builder builder(limits.depth);
  try {
    if (nlohmann::ordered_json::sax_parse(input.begin(), input.end(), &builder)) return builder.take();
  } catch (const nlohmann::json::exception& broken) {
    return Error{ErrorCode::kInvalid, text("JSON: ", broken.what())};
  }
  return Error{ErrorCode::kInvalid, text("JSON: ", builder.why())};
}

}  // namespace monarch
