#include "cli/follow/line_pattern.h"

#include <re2/re2.h>

#include <cstdint>
#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

// Of the compiled pattern and of what matching finds out about it. A pattern that needs more is refused.
constexpr std::int64_t kMemoryBytes = 8 << 20;

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

re2::RE2::Options options() {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMemoryBytes);
  return options;
}

// RE2 names no place for a parenthesis without its partner: it is the first one without which the pattern would do.
std::optional<std::size_t> lone_parenthesis(std::string_view pattern, char parenthesis) {
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != parenthesis) continue;
    std::string without(pattern);
    without.insert(at, 1, '\\');
    if (re2::RE2(without, options()).ok()) return at;
  }
  return std::nullopt;
}

// Where the mistake is, if that is known.
std::optional<std::size_t> place_of_mistake(const re2::RE2& refused, std::string_view pattern) {
  switch (refused.error_code()) {
    case re2::RE2::ErrorMissingParen: return lone_parenthesis(pattern, '(');
    case re2::RE2::ErrorUnexpectedParen: return lone_parenthesis(pattern, ')');
    case re2::RE2::ErrorTrailingBackslash: return pattern.size() - 1;
    default: break;
  }
  const std::string& part = refused.error_arg();
  if (part.empty()) return std::nullopt;
  const std::size_t at = pattern.find(part);
  if (at == std::string_view::npos || pattern.find(part, at + 1) != std::string_view::npos) return std::nullopt;
  return at;
}

std::string reason_of(const re2::RE2& refused) {
  switch (refused.error_code()) {
    case re2::RE2::ErrorMissingParen: return "a ( is never closed; \\( stands for one";
    case re2::RE2::ErrorUnexpectedParen: return "a ) closes nothing; \\) stands for one";
    default: return printable(refused.error());
  }
}

}  // namespace

Result<LinePattern> LinePattern::parse(std::string_view pattern) {
  if (pattern.empty()) return Error{ErrorCode::kInvalid, "an empty pattern"};
  if (pattern.size() > kLongestPattern) {
    return Error{ErrorCode::kInvalid, text("a pattern of ", pattern.size(), " bytes; at most ", kLongestPattern)};
  }
  auto compiled = std::make_shared<const re2::RE2>(piece(pattern), options());
  if (compiled->ok()) return LinePattern(std::move(compiled));
  const auto at = place_of_mistake(*compiled, pattern);
  return Error{ErrorCode::kInvalid,
               text("`", printable(pattern), "`", at ? text(", column ", *at + 1) : "", ": ", reason_of(*compiled))};
}

bool LinePattern::matches(std::string_view line) const {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return re2::RE2::PartialMatch(piece(line), *compiled_);
}

std::size_t LinePattern::groups() const { return static_cast<std::size_t>(compiled_->NumberOfCapturingGroups()); }

std::optional<std::string> LinePattern::first_group(std::string_view line) const {
  if (groups() == 0) return std::nullopt;
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::string taken;
  if (!re2::RE2::PartialMatch(piece(line), *compiled_, &taken)) return std::nullopt;
  return taken;
}

}  // namespace monarch
