#include "supervisor/spec/hostlist.h"

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

bool all_digits(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Error invalid(std::string message) { return {ErrorCode::kInvalid, std::move(message)}; }

std::string padded(std::uint32_t number, std::size_t width) {
  const std::string digits = text(number);
  return digits.size() >= width ? digits : std::string(width - digits.size(), '0') + digits;
}

// The numbers of "01-20,25", written out.
Result<std::vector<std::string>> expand_brackets(std::string_view inside) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t comma = std::min(inside.find(','), inside.size());
    const std::string_view part = inside.substr(0, comma);
    const std::size_t dash = part.find('-');
    const std::string_view low = part.substr(0, dash);
    const std::string_view high = dash == std::string_view::npos ? low : part.substr(dash + 1);
    if (!all_digits(low) || !all_digits(high)) return invalid(text("`", part, "` is neither a number nor a range"));
    if (low.size() > kMostDigits || high.size() > kMostDigits) return invalid(text("`", part, "` has too many digits"));
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    (void)std::from_chars(low.data(), low.data() + low.size(), first);  // nine digits always fit
    (void)std::from_chars(high.data(), high.data() + high.size(), last);
    if (first > last) return invalid(text("`", part, "` runs backwards"));
    if (last - first >= limits::kHostlistNames || out.size() + (last - first) >= limits::kHostlistNames) {
      return invalid(text("`", part, "` makes more than ", limits::kHostlistNames, " names"));
    }
    for (std::uint32_t n = first; n <= last; ++n) out.push_back(padded(n, low.size()));
    if (comma == inside.size()) return out;
    inside.remove_prefix(comma + 1);
  }
}

// Every name of one item of the list; `[…]` may stand more than once in it.
Result<std::vector<std::string>> expand_item(std::string_view item) {
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
    if (count > limits::kHostlistNames || count * names[0].size() > kMostBytes) {
      return invalid(text("more than ", limits::kHostlistNames, " names"));
    }
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

std::uint32_t number_of(std::string_view digits) {
  std::uint32_t value = 0;
  (void)std::from_chars(digits.data(), digits.data() + digits.size(), value);  // at most nine digits
  return value;
}

// Whether `next` continues `previous` in a range that starts with numbers of `width` digits.
bool continues(std::string_view previous, std::string_view next, std::size_t width) {
  return number_of(next) == number_of(previous) + 1 && next == padded(number_of(next), width);
}

}  // namespace

bool is_host_name(std::string_view name) {
  if (name.empty() || name.size() > kLongestHostName || name[0] == '-' || name[0] == '.') return false;
  return std::all_of(name.begin(), name.end(), is_host_character);
}

Result<std::vector<std::string>> expand_hostlist(std::string_view list) {
  std::vector<std::string> names;
  std::size_t begin = 0;
  bool bracket = false;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') bracket = true;
    if (i < list.size() && list[i] == ']') bracket = false;
    if (i < list.size() && (list[i] != ',' || bracket)) continue;
    const std::string_view item = list.substr(begin, i - begin);
    if (item.empty()) return invalid("an empty name");
    MONARCH_ASSIGN(std::vector<std::string> more, expand_item(item));
    if (names.size() + more.size() > limits::kHostlistNames) {
      return invalid(text("more than ", limits::kHostlistNames, " names"));
    }
    names.insert(names.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    begin = i + 1;
  }
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) return invalid(text("`", name, "` is in the list twice"));
  }
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
             continues(high, split(names[j + 1]).digits, low.size())) {
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
