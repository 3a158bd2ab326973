#include "supervisor/core/spec/hostlist.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kLongestHostName = 253;  // of a DNS name
constexpr std::size_t kMostDigits = 9;         // of a number in brackets
constexpr std::size_t kMostBytes = 8U << 20U;  // of all names together

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

Error invalid(std::string message) { return {ErrorCode::kInvalid, std::move(message)}; }

std::string padded(std::uint32_t number, std::size_t width) {
  const std::string digits = text(number);
  return digits.size() >= width ? digits : std::string(width - digits.size(), '0') + digits;
}

// "01-20" or "01-20/3" or "25".
struct NumberRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::uint32_t step = 1;
  std::size_t width = 0;
  std::uint64_t count() const { return (last - first) / step + 1; }
};

std::uint32_t number_of(std::string_view digits) {
  std::uint32_t value = 0;
  (void)std::from_chars(digits.data(), digits.data() + digits.size(), value);  // at most nine digits: they fit
  return value;
}

Error too_many(std::string_view what, std::uint64_t names) {
  return invalid(text("`", what, "` makes ", names, " names; a list has at most ", limits::kHostlistNames));
}

Result<NumberRange> parse_range(std::string_view part) {
  const std::size_t slash = std::min(part.find('/'), part.size());
  const std::string_view ends = part.substr(0, slash);
  const std::size_t dash = ends.find('-');
  const std::string_view low = ends.substr(0, dash);
  const std::string_view high = dash == std::string_view::npos ? low : ends.substr(dash + 1);
  const std::string_view step = slash == part.size() ? "1" : part.substr(slash + 1);
  const bool stepped_number = slash < part.size() && dash == std::string_view::npos;
  if (!all_digits(low) || !all_digits(high) || !all_digits(step) || stepped_number) {
    return invalid(text("`", part, "` is neither a number nor a range"));
  }
  if (std::max({low.size(), high.size(), step.size()}) > kMostDigits) {
    return invalid(text("`", part, "` has too many digits"));
  }
  const NumberRange range{
      .first = number_of(low), .last = number_of(high), .step = number_of(step), .width = low.size()};
  if (range.step == 0) return invalid(text("`", part, "` has a step of 0"));
  if (range.first > range.last) return invalid(text("`", part, "` runs backwards"));
  return range;
}

// The numbers of "01-20,25", written out; how many there are is known before.
Result<std::vector<std::string>> expand_brackets(std::string_view inside) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t comma = std::min(inside.find(','), inside.size());
    const std::string_view part = inside.substr(0, comma);
    MONARCH_ASSIGN(const NumberRange range, parse_range(part));
    if (out.size() + range.count() > limits::kHostlistNames) return too_many(part, out.size() + range.count());
    for (std::uint64_t n = range.first; n <= range.last; n += range.step) {
      out.push_back(padded(static_cast<std::uint32_t>(n), range.width));
    }
    if (comma == inside.size()) return out;
    inside.remove_prefix(comma + 1);
  }
}

// Every name of one item of the list; `[…]` may stand more than once in it.
Result<std::vector<std::string>> expand_item(std::string_view item) {
  const std::string_view whole = item;
  std::vector<std::string> names = {""};
  while (!item.empty()) {
    const std::size_t open = std::min(item.find('['), item.size());
    if (names[0].size() + open > kLongestHostName) return invalid("a name of more than 253 characters");
    for (std::string& name : names) name += item.substr(0, open);
    item.remove_prefix(open);
    if (item.empty()) break;
    const std::size_t close = item.find(']');
    if (close == std::string_view::npos) return invalid("a `[` is not closed");
    MONARCH_ASSIGN(const std::vector<std::string> numbers, expand_brackets(item.substr(1, close - 1)));
    const std::size_t count = names.size() * numbers.size();
    if (count > limits::kHostlistNames) return too_many(whole, count);
    if (count * names[0].size() > kMostBytes)
      return invalid(text("`", whole, "` makes more than ", kMostBytes, " bytes"));
    std::vector<std::string> longer;
    longer.reserve(names.size() * numbers.size());
    for (const std::string& name : names) {
      for (const std::string& number : numbers) longer.push_back(name + number);
    }
    names = std::move(longer);
    item.remove_prefix(close + 1);
  }
  for (const std::string& name : names) {
    if (!is_host_name(name)) return invalid(text("`", name, "` is not the name of a host"));
  }
  return names;
}

// A name as its text and the number at its end.
struct Split {
  std::string_view stem;
  std::string_view digits;
};

Split split(std::string_view name) {
  std::size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9' && name.size() - begin < kMostDigits) --begin;
  return {name.substr(0, begin), name.substr(begin)};
}

// Whether `next` continues `previous` in a range that starts with numbers of `width` digits.
bool is_next(std::string_view previous, std::string_view next, std::size_t width) {
  return number_of(next) == number_of(previous) + 1 && next == padded(number_of(next), width);
}

}  // namespace

bool is_host_name(std::string_view name) {
  if (name.empty() || name.size() > kLongestHostName || name[0] == '-' || name[0] == '.') return false;
  return std::all_of(name.begin(), name.end(), is_host_character);
}

namespace {

// "a,n[1,2]" is two items: a comma in brackets separates numbers.
Result<std::vector<std::string_view>> split_items(std::string_view list) {
  std::vector<std::string_view> items;
  std::size_t begin = 0;
  bool bracket = false;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') bracket = true;
    if (i < list.size() && list[i] == ']') bracket = false;
    if (i < list.size() && (list[i] != ',' || bracket)) continue;
    if (i == begin) return invalid("an empty name");
    items.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  return items;
}

// The number of slots behind the last `:` of an item, which is taken off it.
Result<std::optional<std::uint32_t>> take_slots(std::string_view& item) {
  const std::size_t colon = item.rfind(':');
  if (colon == std::string_view::npos) return std::optional<std::uint32_t>();
  const std::string_view digits = item.substr(colon + 1);
  const std::uint32_t slots = all_digits(digits) && digits.size() <= kMostDigits ? number_of(digits) : 0;
  if (slots == 0 || slots > limits::kRanksPerJob) {
    return invalid(text("`", digits, "` behind the `:` is no number of ranks from 1 to ", limits::kRanksPerJob));
  }
  item.remove_suffix(digits.size() + 1);
  return std::optional(slots);
}

Status append_item(std::vector<HostSlots>& hosts, std::string_view item, std::optional<std::uint32_t> slots) {
  MONARCH_ASSIGN(std::vector<std::string> names, expand_item(item));
  const std::size_t count = hosts.size() + names.size();
  if (count > limits::kHostlistNames) return too_many(item, count);
  for (std::string& name : names) hosts.push_back({std::move(name), slots});
  return {};
}

Status check_distinct(const std::vector<HostSlots>& hosts) {
  std::set<std::string_view> seen;
  for (const HostSlots& host : hosts) {
    if (!seen.insert(host.name).second) return invalid(text("`", host.name, "` is in the list twice"));
  }
  return {};
}

}  // namespace

Result<std::vector<HostSlots>> expand_slot_list(std::string_view list) {
  std::vector<HostSlots> hosts;
  MONARCH_ASSIGN(const std::vector<std::string_view> items, split_items(list));
  for (std::string_view item : items) {
    MONARCH_ASSIGN(const std::optional<std::uint32_t> slots, take_slots(item));
    MONARCH_TRY(append_item(hosts, item, slots));
  }
  MONARCH_TRY(check_distinct(hosts));
  return hosts;
}

Result<std::vector<std::string>> expand_hostlist(std::string_view list) {
  std::vector<HostSlots> hosts;
  MONARCH_ASSIGN(const std::vector<std::string_view> items, split_items(list));
  for (const std::string_view item : items) MONARCH_TRY(append_item(hosts, item, std::nullopt));
  MONARCH_TRY(check_distinct(hosts));
  std::vector<std::string> names;
  names.reserve(hosts.size());
  for (HostSlots& host : hosts) names.push_back(std::move(host.name));
  return names;
}

std::string fold_hostlist(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size();) {
    const Split first = split(names[i]);
    std::string inside;
    std::size_t j = i;
    while (j < names.size() && split(names[j]).stem == first.stem && !split(names[j]).digits.empty()) {
      const std::string_view low = split(names[j]).digits;
      std::string_view high = low;
      while (j + 1 < names.size() && split(names[j + 1]).stem == first.stem &&
             is_next(high, split(names[j + 1]).digits, low.size())) {
        high = split(names[++j]).digits;
      }
      ++j;
      if (!inside.empty()) inside += ",";
      inside += low == high ? std::string(low) : text(low, "-", high);
    }
    const bool single = j <= i + 1;
    if (!out.empty()) out += ",";
    out += single ? names[i] : text(first.stem, "[", inside, "]");
    i = std::max(j, i + 1);
  }
  return out;
}

}  // namespace monarch
