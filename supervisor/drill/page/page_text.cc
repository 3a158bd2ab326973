#include "supervisor/drill/page/page_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "transport/base/text.h"

namespace monarch::drill {

namespace {

// The marks of direction that a terminal does not mind, so that printable() leaves them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kDirections = {{
    {"\xe2\x80\x8e", "\\u200e"},
    {"\xe2\x80\x8f", "\\u200f"},
    {"\xd8\x9c", "\\u061c"},
}};

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

}  // namespace

std::string page_text(std::string_view raw, std::size_t most) {
  const bool cut = raw.size() > most;
  if (cut) {
    std::size_t end = most;
    while (end > 0 && end + 3 > most && !begins_character(raw[end])) --end;
    raw = raw.substr(0, end);
  }
  std::string out = xml_text(raw);
  for (const auto& [mark, shown] : kDirections) {
    for (std::size_t at = out.find(mark); at != std::string::npos; at = out.find(mark)) {
      out.replace(at, mark.size(), shown);
    }
  }
  return cut ? out + "…" : out;
}

std::string fixed(double value, int digits) {
  if (!std::isfinite(value)) return "0";
  std::array<char, 400> shown{};  // the longest double has 309 digits before its point
  const auto end = std::to_chars(shown.data(), shown.data() + shown.size(), value, std::chars_format::fixed, digits);
  return std::string(shown.data(), end.ptr);
}

std::string decimals(double value, int digits) {
  std::string out = fixed(value, digits);
  if (out.find('.') != std::string::npos) {
    out.erase(out.find_last_not_of('0') + 1);
    if (out.ends_with('.')) out.pop_back();
  }
  return out == "-0" ? "0" : out;
}

std::string percent(double part) { return decimals(part * 100) + " %"; }

std::string name_end(std::string_view name, std::size_t most) {
  std::size_t at = name.size();
  for (std::size_t characters = 0; at > 0 && characters + 1 < most;
       characters += begins_character(name[at]) ? 1U : 0U) {
    --at;
  }
  if (at <= 1) return std::string(name);
  return text("…", name.substr(at));
}

}  // namespace monarch::drill
