#include "supervisor/spec/yaml/scalar.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "transport/base/text.h"

namespace monarch {

namespace {

template <class T>
std::optional<T> whole(std::string_view s, int base = 10) {
  T value{};
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value, base);
  if (error != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return value;
}

std::optional<double> decimal(std::string_view s) {
  double value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value, std::chars_format::fixed);
  if (error != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return value;
}

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string without(std::string_view s, std::string_view unwanted) {
  std::string out;
  for (const char c : s) {
    if (unwanted.find(c) == std::string_view::npos) out.push_back(c);
  }
  return out;
}

// The integer that somebody meant who wrote it in another notation, in ours.
WrongScalar wrong_integer(std::string_view s) {
  const std::string low = lower(s);
  const bool negative = low.starts_with('-');
  const std::string_view digits = std::string_view(low).substr(negative || low.starts_with('+') ? 1 : 0);
  const auto converted = [&](std::string_view part, int base) {
    const auto value = whole<std::int64_t>(part, base);
    return value ? text(negative ? "-" : "", *value) : std::string();
  };
  if (digits.starts_with("0o")) return {"octal is not taken", converted(digits.substr(2), 8)};
  if (digits.starts_with("0x")) return {"hexadecimal is not taken", converted(digits.substr(2), 16)};
  if (digits.starts_with("0b")) return {"binary is not taken", converted(digits.substr(2), 2)};
  if (all_digits(digits) && digits.size() > 1 && digits[0] == '0') {
    const std::size_t first = std::min(digits.find_first_not_of('0'), digits.size() - 1);
    return {"a leading zero means octal to some readers", converted(digits.substr(first), 10)};
  }
  if (low.starts_with('+')) return {"a plus sign is not taken", converted(digits, 10)};
  const std::string plain = without(digits, "_,' ");
  if (plain != digits && all_digits(plain)) return {"digits are not grouped", converted(plain, 10)};
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc() && end == digits.data() + digits.size()) {
    const bool exact = value < 9e15 && value == static_cast<double>(static_cast<std::int64_t>(value));
    return {"not written as an integer",
            exact ? text(negative && value != 0 ? "-" : "", static_cast<std::int64_t>(value)) : ""};
  }
  return {"not an integer", ""};
}

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

constexpr Unit kTimeUnits[] = {{"d", 86'400'000'000'000},
                               {"h", 3'600'000'000'000},
                               {"m", 60'000'000'000},
                               {"s", 1'000'000'000},
                               {"ms", 1'000'000}};

constexpr Unit kSizeUnits[] = {
    {"TiB", 1LL << 40}, {"GiB", 1LL << 30}, {"MiB", 1LL << 20}, {"KiB", 1LL << 10}, {"B", 1}};

const Unit* find_unit(const Unit* begin, const Unit* end, std::string_view name) {
  const Unit* found = std::find_if(begin, end, [&](const Unit& unit) { return unit.name == name; });
  return found == end ? nullptr : found;
}

std::string_view take_number(std::string_view& rest) {
  const std::size_t length = std::min(rest.find_first_not_of("0123456789."), rest.size());
  const std::string_view number = rest.substr(0, length);
  rest.remove_prefix(length);
  return number;
}

std::string_view take_letters(std::string_view& rest) {
  const std::size_t length = std::min(rest.find_first_of("0123456789."), rest.size());
  const std::string_view letters = rest.substr(0, length);
  rest.remove_prefix(length);
  return letters;
}

// number × factor if it is exact enough and fits.
std::optional<std::int64_t> scaled(std::string_view number, std::int64_t factor) {
  if (all_digits(number)) {
    const auto value = whole<std::int64_t>(number);
    if (!value || *value > std::numeric_limits<std::int64_t>::max() / factor) return std::nullopt;
    return *value * factor;
  }
  if (number.empty() || number.front() == '.' || number.back() == '.') return std::nullopt;
  const auto value = decimal(number);
  if (!value || *value * static_cast<double>(factor) > 9e18) return std::nullopt;
  return std::llround(*value * static_cast<double>(factor));
}

std::optional<Duration> exact_duration(std::string_view s) {
  std::int64_t total = 0;
  std::int64_t last_factor = std::numeric_limits<std::int64_t>::max();
  if (s.empty()) return std::nullopt;
  while (!s.empty()) {
    const std::string_view number = take_number(s);
    const Unit* unit = find_unit(std::begin(kTimeUnits), std::end(kTimeUnits), take_letters(s));
    if (number.empty() || unit == nullptr || unit->factor >= last_factor) return std::nullopt;
    const auto part = scaled(number, unit->factor);
    if (!part || *part > std::numeric_limits<std::int64_t>::max() - 1 - total) return std::nullopt;
    total += *part;
    last_factor = unit->factor;
  }
  return Duration::nanoseconds(total);
}

// "4:00:00" or "1:30": hours and minutes, as Slurm and clocks write them.
std::string from_clock(std::string_view s) {
  std::vector<std::int64_t> parts;
  while (true) {
    const std::size_t colon = s.find(':');
    const auto value = whole<std::int64_t>(s.substr(0, colon));
    if (!value || *value < 0 || *value > 100'000) return "";
    parts.push_back(*value);
    if (colon == std::string_view::npos) break;
    s.remove_prefix(colon + 1);
  }
  if (parts.size() == 2) parts.push_back(0);
  if (parts.size() != 3) return "";
  return write_duration(Duration::seconds(parts[0] * 3600 + parts[1] * 60 + parts[2]));
}

// "1-12:00:00": days and a time of day, as Slurm writes them.
std::string from_days(std::string_view s) {
  const std::size_t dash = s.find('-');
  const auto days = whole<std::int64_t>(s.substr(0, dash));
  const std::string rest(s.substr(std::min(dash + 1, s.size())));
  const std::string hours = from_clock(rest.find(':') == std::string::npos ? text(rest, ":00") : rest);
  if (!days || *days < 0 || *days > 10'000 || hours.empty()) return "";
  return text(*days, "d", hours == "0s" ? "" : hours);
}

struct Spelling {
  std::string_view word;
  std::string_view unit;
};

constexpr Spelling kTimeSpellings[] = {
    {"sec", "s"},    {"secs", "s"},    {"second", "s"}, {"seconds", "s"}, {"min", "m"},          {"mins", "m"},
    {"minute", "m"}, {"minutes", "m"}, {"hr", "h"},     {"hrs", "h"},     {"hour", "h"},         {"hours", "h"},
    {"day", "d"},    {"days", "d"},    {"msec", "ms"},  {"millis", "ms"}, {"milliseconds", "ms"}};

WrongScalar wrong_duration(std::string_view s) {
  if (all_digits(s)) return {"a duration has a unit", text(s, "s")};
  if (s.find('-') != std::string_view::npos && !from_days(s).empty()) {
    return {"a duration is not written like a date", from_days(s)};
  }
  if (s.find(':') != std::string_view::npos) {
    return {"a duration is not written like a time of day", from_clock(s)};
  }
  const std::string cleaned = lower(without(s, " _"));
  std::string_view rest = cleaned;
  std::string right;
  while (!rest.empty()) {
    right += take_number(rest);
    const std::string_view letters = take_letters(rest);
    const auto* spelling = std::find_if(std::begin(kTimeSpellings), std::end(kTimeSpellings),
                                        [&](const Spelling& spelled) { return spelled.word == letters; });
    right += spelling == std::end(kTimeSpellings) ? letters : spelling->unit;
  }
  if (exact_duration(right) && right != s) return {"not written as a duration", right};
  const bool number = s.front() == '.' || std::isdigit(static_cast<unsigned char>(s.front())) != 0;  // not `infinity`
  if (number && decimal(s)) return {"a duration has a unit", exact_duration(text(s, "s")) ? text(s, "s") : ""};
  return {"not a duration", ""};
}

WrongScalar wrong_size(std::string_view s) {
  if (all_digits(s)) return {"a size has a unit", text(s, s.size() < 4 ? "MiB" : "B")};
  const std::string cleaned = lower(without(s, " _"));
  std::string_view rest = cleaned;
  const std::string number(take_number(rest));
  for (const Unit& unit : kSizeUnits) {
    const char first = static_cast<char>(std::tolower(static_cast<unsigned char>(unit.name[0])));
    const std::string_view tail = rest.substr(rest.empty() ? 0 : 1);
    if (number.empty() || rest.empty() || rest[0] != first) continue;
    if (tail.empty() || tail == "b" || tail == "i" || tail == "ib" || (first == 'b' && tail.starts_with("yte"))) {
      return {"sizes are counted in B, KiB, MiB, GiB and TiB", text(number, unit.name)};
    }
  }
  return {"not a size", ""};
}

template <class T>
Scalar<T> refused(WrongScalar wrong) {
  return {std::nullopt, std::move(wrong)};
}

template <class T>
Scalar<T> refuse_quoted(const YamlNode& node, bool would_do) {
  return refused<T>({"quotes make it a text", would_do ? node.text : ""});
}

}  // namespace

Scalar<std::int64_t> parse_integer(const YamlNode& node) {
  const std::string_view digits = std::string_view(node.text).substr(node.text.starts_with('-') ? 1 : 0);
  const bool ours = all_digits(digits) && (digits.size() == 1 || digits[0] != '0') && node.text != "-0";
  if (node.quoted) return refuse_quoted<std::int64_t>(node, ours);
  if (!ours) return refused<std::int64_t>(wrong_integer(node.text));
  const auto value = whole<std::int64_t>(node.text);
  if (!value) return refused<std::int64_t>({"far too large", ""});
  return {value, {}};
}

Scalar<double> parse_number(const YamlNode& node) {
  const std::string_view s = node.text;
  const std::size_t dot = s.find('.');
  const std::string_view before = s.substr(0, dot);
  const bool plain = all_digits(before) && (before.size() == 1 || before[0] != '0') &&
                     (dot == std::string_view::npos || all_digits(s.substr(dot + 1)));
  if (node.quoted) return refuse_quoted<double>(node, plain);
  if (plain) return {decimal(s), {"far too large", ""}};
  const auto guess = s.starts_with('.') ? decimal(text("0", s)) : std::nullopt;
  if (guess) return refused<double>({"not written as a number", text("0", s)});
  WrongScalar wrong = wrong_integer(s);
  if (wrong.right.empty()) wrong.label = "not a number";
  return refused<double>(std::move(wrong));
}

Scalar<bool> parse_bool(const YamlNode& node) {
  const bool ours = node.text == "true" || node.text == "false";
  if (node.quoted) return refuse_quoted<bool>(node, ours);
  if (ours) return {node.text == "true", {}};
  const std::string low = lower(node.text);
  if (low == "yes" || low == "on" || low == "true" || low == "y" || low == "1") {
    return refused<bool>({"only `true` and `false` are taken", "true"});
  }
  if (low == "no" || low == "off" || low == "false" || low == "n" || low == "0") {
    return refused<bool>({"only `true` and `false` are taken", "false"});
  }
  return refused<bool>({"neither `true` nor `false`", ""});
}

Scalar<Duration> parse_duration(const YamlNode& node) {
  if (const auto value = exact_duration(node.text)) return {value, {}};
  return refused<Duration>(wrong_duration(node.text));
}

Scalar<std::uint64_t> parse_size(const YamlNode& node) {
  std::string_view rest = node.text;
  const std::string_view number = take_number(rest);
  const Unit* unit = find_unit(std::begin(kSizeUnits), std::end(kSizeUnits), rest);
  if (unit == nullptr || number.empty()) return refused<std::uint64_t>(wrong_size(node.text));
  const auto value = scaled(number, unit->factor);
  if (!value) return refused<std::uint64_t>({"far too large", ""});
  return {static_cast<std::uint64_t>(*value), {}};
}

std::string write_duration(Duration duration) {
  const std::int64_t ms = duration.count_milliseconds();
  if (ms == 0) return "0s";
  if (ms < 1000) return text(ms, "ms");
  std::string out;
  std::int64_t rest = ms * 1'000'000;
  for (const Unit& unit : kTimeUnits) {
    const bool seconds = unit.name == "s";
    if (seconds && rest % unit.factor != 0) {
      std::string decimals = text(rest / 1'000'000 % 1000 + 1000).substr(1);  // three digits
      while (decimals.ends_with('0')) decimals.pop_back();
      return out + text(rest / unit.factor, ".", decimals, "s");
    }
    if (rest >= unit.factor) out += text(rest / unit.factor, unit.name);
    rest %= unit.factor;
  }
  return out;
}

}  // namespace monarch
