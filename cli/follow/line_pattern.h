#pragma once

// LinePattern: the regular expressions of --grep, in RE2's syntax, matched in time linear in the line whatever the
// pattern is (no backtracking). Lines are UTF-8; a byte that is not matches nothing but \C.
//
// Thread: a value; matching changes nothing.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "transport/base/result.h"

namespace re2 {
class RE2;
}

namespace monarch {

class LinePattern {
 public:
  static constexpr std::size_t kLongestPattern = 1000;

  // kInvalid names the column, where there is one.
  static Result<LinePattern> parse(std::string_view pattern);

  // Somewhere in the line, which has no newline; a carriage return at its end does not count.
  bool matches(std::string_view line) const;

  // Groups in parentheses that are not (?:).
  std::size_t groups() const;
  // What the first of them takes from such a line; nothing: the pattern does not match, or has none.
  std::optional<std::string> first_group(std::string_view line) const;

 private:
  explicit LinePattern(std::shared_ptr<const re2::RE2> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const re2::RE2> compiled_;  // owners: the copies of this value
};

}  // namespace monarch
