#include "supervisor/workspace/wildmatch.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

namespace monarch {

namespace {

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

// "[…]": `at` stands behind the bracket, and in the end behind the one that closes it. Nothing: none closes it, or it
// has an unknown class; such a pattern matches nothing.
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

// Where a run of stars that ends at `end` is a ** of its own: slashes, or an end of the pattern, are on both sides of
// it.
bool stands_alone(std::string_view pattern, std::size_t begin, std::size_t end) {
  const std::string_view rest = pattern.substr(end);
  return end - begin > 1 && (begin == 0 || pattern[begin - 1] == '/') &&
         (rest.empty() || rest.front() == '/' || rest.starts_with("\\/"));
}

}  // namespace

WildPattern::WildPattern(std::string_view pattern, WildScope scope) {
  const bool of_path = scope == WildScope::kPath;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    Token token;
    switch (pattern[at]) {
      case '*': {
        const std::size_t begin = at;
        at = std::min(pattern.find_first_not_of('*', at), pattern.size()) - 1;
        token.kind = Kind::kStar;
        const bool alone = of_path && stands_alone(pattern, begin, at + 1);
        token.crosses = alone || !of_path;
        if (alone && at + 1 < pattern.size() && pattern[at + 1] == '/') tokens_.push_back({.kind = Kind::kFolders});
        break;
      }
      case '?':
      case '[': {
        Bytes set;
        set.set();
        std::size_t end = at;
        for (unsigned c = 0; pattern[at] == '[' && c < set.size(); ++c) {
          Bracket bracket(pattern, at + 1, static_cast<unsigned char>(c));
          const auto holds = bracket.read();
          if (!holds) return;
          set.set(c, *holds);
          end = bracket.at() - 1;
        }
        at = end;
        if (of_path) set.reset('/');
        token.kind = Kind::kSet;
        token.set = static_cast<std::uint32_t>(sets_.size());
        sets_.push_back(set);
        break;
      }
      case '\\':
        if (++at == pattern.size()) return;
        [[fallthrough]];
      default: token.byte = pattern[at];
    }
    tokens_.push_back(token);
  }
  possible_ = true;
}

bool WildPattern::takes(const Token& token, char c) const {
  switch (token.kind) {
    case Kind::kByte: return c == token.byte;
    case Kind::kSet: return sets_[token.set][static_cast<unsigned char>(c)];
    case Kind::kStar: return token.crosses || c != '/';
    case Kind::kFolders: break;
  }
  return false;
}

// All that can be reached without a byte.
void WildPattern::pass_stars(Places& places) const {
  for (std::size_t at = 0; at < tokens_.size(); ++at) {
    const Kind kind = tokens_[at].kind;
    if (!places[at] || (kind != Kind::kStar && kind != Kind::kFolders)) continue;
    places[at + 1] = true;
    if (kind == Kind::kFolders) places[at + 3] = true;
  }
}

bool WildPattern::matches(std::string_view subject) const {
  if (!possible_) return false;
  Places places(tokens_.size() + 1);
  places[0] = true;
  pass_stars(places);
  for (const char c : subject) {
    Places next(tokens_.size() + 1);
    bool any = false;
    for (std::size_t at = 0; at < tokens_.size(); ++at) {
      if (!places[at] || !takes(tokens_[at], c)) continue;
      next[tokens_[at].kind == Kind::kStar ? at : at + 1] = true;
      any = true;
    }
    if (!any) return false;
    pass_stars(next);
    places = std::move(next);
  }
  return places.back();
}

}  // namespace monarch
