#include "supervisor/workspace/wildmatch.h"

#include <array>
#include <cctype>
#include <optional>

namespace monarch {

namespace {

// Beside a plain no, how far back it is worth trying again: where the subject has ended, no star before this place can help; where a
// slash stopped a *, only a ** can.
enum class Answer : std::uint8_t { kYes, kNo, kSubjectEnded, kAtSlash };

bool is_in_class(std::string_view name, unsigned char c, bool& known) {
  struct Class {
    std::string_view name;
    int (*holds)(int);
  };
  static constexpr std::array<Class, 12> kClasses = {{{"alnum", std::isalnum},
                                                      {"alpha", std::isalpha},
                                                      {"blank", std::isblank},
                                                      {"cntrl", std::iscntrl},
                                                      {"digit", std::isdigit},
                                                      {"graph", std::isgraph},
                                                      {"lower", std::islower},
                                                      {"print", std::isprint},
                                                      {"punct", std::ispunct},
                                                      {"space", std::isspace},
                                                      {"upper", std::isupper},
                                                      {"xdigit", std::isxdigit}}};
  for (const Class& each : kClasses) {
    if (each.name == name) return c < 0x80 && each.holds(c) != 0;
  }
  known = false;
  return false;
}

// "[…]": `at` stands behind the bracket, and in the end behind the one that closes it. Nothing: none closes it, or it has an unknown
// class; such a pattern matches nothing.
class Bracket {
 public:
  Bracket(std::string_view pattern, std::size_t at, unsigned char subject)
      : pattern_(pattern), at_(at), subject_(subject) {}

  std::optional<bool> read() {
    const bool negated = at_ < pattern_.size() && (pattern_[at_] == '!' || pattern_[at_] == '^');
    if (negated) ++at_;
    // One that closes it at once stands for itself.
    for (bool first = true; first || peek() != ']'; first = false) {
      if (!read_one()) return std::nullopt;
    }
    ++at_;
    return found_ != negated;
  }
  std::size_t at() const { return at_; }

 private:
  // 0 at the end: a subject has none.
  unsigned char peek(std::size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? static_cast<unsigned char>(pattern_[at_ + ahead]) : 0;
  }

  bool read_one() {
    if (at_ >= pattern_.size()) return false;
    if (peek() == '-' && last_ != 0 && peek(1) != 0 && peek(1) != ']') {
      ++at_;
      if (peek() == '\\') ++at_;
      if (at_ >= pattern_.size()) return false;
      found_ = found_ || (subject_ >= last_ && subject_ <= peek());
      last_ = 0;
      ++at_;
      return true;
    }
    if (peek() == '[' && peek(1) == ':') {
      const std::size_t close = pattern_.find(']', at_ + 2);
      if (close == std::string_view::npos) return false;
      if (close > at_ + 2 && pattern_[close - 1] == ':') {
        bool known = true;
        const bool holds = is_in_class(pattern_.substr(at_ + 2, close - at_ - 3), subject_, known);
        found_ = found_ || holds;
        last_ = 0;
        at_ = close + 1;
        return known;
      }
    }
    if (peek() == '\\') ++at_;
    if (at_ >= pattern_.size()) return false;
    last_ = peek();
    found_ = found_ || last_ == subject_;
    ++at_;
    return true;
  }

  std::string_view pattern_;
  std::size_t at_;
  unsigned char subject_;
  unsigned char last_ = 0;  // that may begin a range
  bool found_ = false;
};

Answer match(std::string_view pattern, std::string_view subject, WildScope scope);

// `at` stands at the first of the stars.
Answer match_stars(std::string_view pattern, std::size_t at, std::string_view subject, WildScope scope) {
  const std::size_t begin = at;
  while (at < pattern.size() && pattern[at] == '*') ++at;
  const std::string_view rest = pattern.substr(at);
  bool crosses = scope == WildScope::kName;
  if (!crosses && at - begin > 1) {
    crosses =
        (begin == 0 || pattern[begin - 1] == '/') && (rest.empty() || rest.front() == '/' || rest.starts_with("\\/"));
    // "**/" matches no folder at all, too.
    if (crosses && rest.starts_with('/') && match(rest.substr(1), subject, scope) == Answer::kYes) return Answer::kYes;
  }
  if (rest.empty()) {
    return crosses || subject.find('/') == std::string_view::npos ? Answer::kYes : Answer::kNo;
  }
  if (!crosses && rest.front() == '/') {
    const std::size_t slash = subject.find('/');
    if (slash == std::string_view::npos) return Answer::kSubjectEnded;
    return match(rest, subject.substr(slash), scope);
  }
  for (; !subject.empty(); subject.remove_prefix(1)) {
    const Answer answer = match(rest, subject, scope);
    if (answer != Answer::kNo && (!crosses || answer != Answer::kAtSlash)) return answer;
    if (!crosses && subject.front() == '/') return Answer::kAtSlash;
  }
  return Answer::kSubjectEnded;
}

Answer match(std::string_view pattern, std::string_view subject, WildScope scope) {
  std::size_t at = 0;
  for (; at < pattern.size(); ++at) {
    if (pattern[at] == '*') return match_stars(pattern, at, subject, scope);
    if (subject.empty()) return Answer::kSubjectEnded;
    const char next = subject.front();
    subject.remove_prefix(1);
    switch (pattern[at]) {
      case '?':
        if (scope == WildScope::kPath && next == '/') return Answer::kNo;
        break;
      case '[': {
        Bracket bracket(pattern, at + 1, static_cast<unsigned char>(next));
        const auto holds = bracket.read();
        if (!holds) return Answer::kSubjectEnded;
        if (!*holds || (scope == WildScope::kPath && next == '/')) return Answer::kNo;
        at = bracket.at() - 1;
        break;
      }
      case '\\':
        if (++at == pattern.size()) return Answer::kNo;
        [[fallthrough]];
      default:
        if (pattern[at] != next) return Answer::kNo;
    }
  }
  return subject.empty() ? Answer::kYes : Answer::kNo;
}

}  // namespace

bool wildmatch(std::string_view pattern, std::string_view subject, WildScope scope) {
  return match(pattern, subject, scope) == Answer::kYes;
}

}  // namespace monarch
