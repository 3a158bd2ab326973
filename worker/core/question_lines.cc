#include "worker/core/question_lines.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace monarch {

std::optional<std::string_view> line_value(std::string_view message, std::string_view key) {
  while (!message.empty()) {
    const std::size_t end = std::min(message.find('\n'), message.size());
    const std::string_view line = message.substr(0, end);
    message.remove_prefix(std::min(end + 1, message.size()));
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos && line.substr(0, equals) == key) return line.substr(equals + 1);
  }
  return std::nullopt;
}

Error wrong_question(std::string why) { return {ErrorCode::kInvalid, std::move(why)}; }

std::optional<std::uint64_t> whole_number(std::string_view word) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size()) return std::nullopt;
  return number;
}

std::string quoted_ascii(std::string_view words) {
  std::string out = "\"";
  for (const char c : words) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c >= ' ' && c <= '~' ? c : '?');
  }
  out.push_back('"');
  return out;
}

}  // namespace monarch
