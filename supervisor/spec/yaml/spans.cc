#include "supervisor/spec/yaml/spans.h"

#include <algorithm>

namespace monarch {

std::size_t word_span(std::string_view line) { return std::min(line.size(), line.find_first_of(" \t,]}:")); }

std::size_t plain_span(std::string_view line, std::string_view value) {
  if (value.empty()) return word_span(line);
  return line.starts_with(value) ? value.size() : line.find_last_not_of(" \t") + 1;
}

std::size_t end_of_quoted(std::string_view rest) {
  const char quote = rest.empty() ? '"' : rest[0];
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (quote == '"' && rest[i] == '\\') {
      ++i;  // whatever is escaped does not end the text
    } else if (rest[i] == quote) {
      const bool doubled = quote == '\'' && i + 1 < rest.size() && rest[i + 1] == quote;
      if (!doubled) return i + 1;
      ++i;
    }
  }
  return std::string_view::npos;
}

std::size_t quoted_span(std::string_view line) {
  if (line.empty() || (line[0] != '"' && line[0] != '\'')) return 1;
  return std::min(end_of_quoted(line), line.size());
}

}  // namespace monarch
