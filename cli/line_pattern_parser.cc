#include "cli/line_pattern_parser.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

using ByteSet = LinePattern::ByteSet;
using Step = LinePattern::Step;

constexpr std::uint32_t kMostRepeats = 1000;
constexpr std::size_t kDeepestGroup = 100;

struct Node {
  enum class Kind : std::uint8_t { kEmpty, kBytes, kSequence, kEither, kRepeat, kBegin, kEnd };
  Kind kind = Kind::kEmpty;
  ByteSet bytes;
  std::vector<Node> parts;
  std::uint32_t least = 0;
  std::optional<std::uint32_t> most;
};

Node bytes_node(ByteSet bytes) {
  Node node;
  node.kind = Node::Kind::kBytes;
  node.bytes = bytes;
  return node;
}

Node node_of(Node::Kind kind, std::vector<Node> parts) {
  Node node;
  node.kind = kind;
  node.parts = std::move(parts);
  return node;
}

ByteSet range(unsigned first, unsigned last) {
  ByteSet bytes;
  for (unsigned byte = first; byte <= last; ++byte) bytes.set(byte);
  return bytes;
}

ByteSet digits() { return range('0', '9'); }
ByteSet letters() { return range('a', 'z') | range('A', 'Z'); }
ByteSet words() { return letters() | digits() | range('_', '_'); }
ByteSet blanks() { return range('\t', '\r') | range(' ', ' '); }

// One character that is not of `excluded`: a byte of it, or a whole character of UTF-8; a stray byte counts as one too.
Node any_character(const ByteSet& excluded) {
  const ByteSet tail = range(0x80, 0xBF);
  std::vector<Node> ways = {bytes_node(~excluded)};
  std::vector<Node> sequence;
  for (const ByteSet& lead : {range(0xC2, 0xDF), range(0xE0, 0xEF), range(0xF0, 0xF4)}) {
    sequence.assign(1, bytes_node(lead));
    for (std::size_t tails = 0; tails < ways.size(); ++tails) sequence.push_back(bytes_node(tail));
    ways.push_back(node_of(Node::Kind::kSequence, sequence));
  }
  return node_of(Node::Kind::kEither, std::move(ways));
}

class Parser {
 public:
  explicit Parser(std::string_view pattern) : all_(pattern) {
    if (all_.starts_with("(?i)")) {
      any_case_ = true;
      at_ = 4;
    }
  }

  Result<Node> parse() {
    Node node = either(0);
    if (!error_ && at_ < all_.size()) fail(at_, "this ) closes nothing; \\) stands for one");
    if (error_) return *error_;
    return node;
  }

 private:
  bool more() const { return at_ < all_.size() && !error_; }
  char peek() const { return all_[at_]; }

  void fail(std::size_t at, const std::string& what) {
    if (!error_) error_ = Error{ErrorCode::kInvalid, text("`", printable(all_), "`, column ", at + 1, ": ", what)};
  }

  Node either(std::size_t depth) {
    if (depth > kDeepestGroup) fail(at_, text("groups are nested more than ", kDeepestGroup, " deep"));
    std::vector<Node> ways = {sequence(depth)};
    while (more() && peek() == '|') {
      ++at_;
      ways.push_back(sequence(depth));
    }
    return ways.size() == 1 ? std::move(ways.front()) : node_of(Node::Kind::kEither, std::move(ways));
  }

  Node sequence(std::size_t depth) {
    std::vector<Node> parts;
    while (more() && peek() != '|' && peek() != ')') parts.push_back(repeated(depth));
    return node_of(Node::Kind::kSequence, std::move(parts));
  }

  Node repeated(std::size_t depth) {
    const std::size_t began = at_;
    Node node = atom(depth);
    while (more() && (peek() == '*' || peek() == '+' || peek() == '?' || is_count())) {
      if (node.kind == Node::Kind::kBegin || node.kind == Node::Kind::kEnd) {
        fail(at_, text("nothing can be repeated here: ", all_.substr(began, 1), " is no character"));
        break;
      }
      Node repeat = node_of(Node::Kind::kRepeat, {});
      repeat.parts.push_back(std::move(node));
      switch (peek()) {
        case '*': ++at_; break;
        case '+':
          repeat.least = 1;
          ++at_;
          break;
        case '?':
          repeat.most = 1;
          ++at_;
          break;
        default: counts(repeat);
      }
      node = std::move(repeat);
    }
    return node;
  }

  // A { that no number follows is itself.
  bool is_count() const {
    return peek() == '{' && at_ + 1 < all_.size() && all_[at_ + 1] >= '0' && all_[at_ + 1] <= '9';
  }

  std::optional<std::uint32_t> number() {
    std::optional<std::uint32_t> value;
    while (more() && peek() >= '0' && peek() <= '9') {
      value = value.value_or(0) * 10 + static_cast<std::uint32_t>(peek() - '0');
      if (*value > kMostRepeats) {
        fail(at_, text("at most ", kMostRepeats, " repetitions"));
        return value;
      }
      ++at_;
    }
    return value;
  }

  void counts(Node& repeat) {
    const std::size_t open = at_++;
    repeat.least = number().value_or(0);
    repeat.most = repeat.least;
    if (more() && peek() == ',') {
      ++at_;
      repeat.most = number();
    }
    if (error_) return;
    if (!more() || peek() != '}') return fail(open, "this { is never closed; \\{ stands for one");
    if (repeat.most && *repeat.most < repeat.least) return fail(open, "the second number is smaller than the first");
    ++at_;
  }

  Node group(std::size_t depth) {
    const std::size_t open = at_++;
    if (more() && peek() == '?') {
      if (!all_.substr(at_).starts_with("?:")) fail(at_, "(?: is all that may stand here, and (?i) in front of it all");
      at_ += 2;
    }
    Node inner = either(depth + 1);
    if (!more()) {
      fail(open, "this ( is never closed; \\( stands for one");
      return inner;
    }
    ++at_;  // either() ends at a ) where there is more
    return inner;
  }

  Node atom(std::size_t depth) {
    const std::size_t at = at_;
    switch (peek()) {
      case '(': return group(depth);
      case '[': return brackets();
      case '.': ++at_; return any_character(ByteSet());
      case '^': ++at_; return node_of(Node::Kind::kBegin, {});
      case '$': ++at_; return node_of(Node::Kind::kEnd, {});
      case '*':
      case '+':
      case '?': fail(at, text("nothing stands before this ", peek(), " to repeat")); return {};
      case '\\': return escaped();
      default: ++at_; return literal(all_[at]);
    }
  }

  Node literal(char c) const {
    return bytes_node(cased(range(static_cast<unsigned char>(c), static_cast<unsigned char>(c))));
  }

  ByteSet cased(ByteSet bytes) const {
    if (!any_case_) return bytes;
    for (unsigned i = 0; i < 26; ++i) {
      if (bytes['a' + i] || bytes['A' + i]) bytes.set('a' + i).set('A' + i);
    }
    return bytes;
  }

  // \d and the like; nothing for other letters.
  static std::optional<ByteSet> escaped_class(char c) {
    switch (c) {
      case 'd': return digits();
      case 'w': return words();
      case 's': return blanks();
      case 't': return range('\t', '\t');
      default: return std::nullopt;
    }
  }

  Node escaped() {
    const std::size_t at = at_++;
    if (!more()) {
      fail(at, "a \\ at the end; \\\\ stands for one");
      return {};
    }
    const char c = all_[at_++];
    if (const auto bytes = escaped_class(c)) return bytes_node(*bytes);
    if (c == 'D' || c == 'W' || c == 'S') return any_character(*escaped_class(static_cast<char>(c - 'A' + 'a')));
    if (digits()[static_cast<unsigned char>(c)]) fail(at, "there are no back-references");
    if (letters()[static_cast<unsigned char>(c)])
      fail(at, text("there is no \\", c, "; there are \\d \\w \\s \\D \\W \\S \\t"));
    return literal(c);
  }

  struct NamedClass {
    std::string_view name;
    ByteSet bytes;
  };

  // [:digit:] and the like, within brackets.
  ByteSet named_class(std::size_t at) {
    static const std::array kClasses = {NamedClass{"alpha", letters()},
                                        NamedClass{"digit", digits()},
                                        NamedClass{"alnum", letters() | digits()},
                                        NamedClass{"upper", range('A', 'Z')},
                                        NamedClass{"lower", range('a', 'z')},
                                        NamedClass{"space", blanks()},
                                        NamedClass{"punct", range('!', '~') & ~(letters() | digits())},
                                        NamedClass{"xdigit", digits() | range('a', 'f') | range('A', 'F')}};
    for (const NamedClass& known : kClasses) {
      const std::string written = text("[:", known.name, ":]");
      if (!all_.substr(at_).starts_with(written)) continue;
      at_ += written.size();
      return known.bytes;
    }
    fail(at, "there are [:alpha:] [:digit:] [:alnum:] [:upper:] [:lower:] [:space:] [:punct:] [:xdigit:]");
    return {};
  }

  // One member of brackets that may begin or end a range.
  std::optional<unsigned char> member() {
    if (!more()) return std::nullopt;
    if (static_cast<unsigned char>(peek()) >= 0x80)
      fail(at_, "only ASCII characters are understood in brackets; use (a|b)");
    if (peek() == '\\' && at_ + 1 < all_.size()) ++at_;
    return static_cast<unsigned char>(all_[at_++]);
  }

  Node brackets() {
    const std::size_t open = at_++;
    ByteSet bytes;
    const bool negated = more() && peek() == '^';
    if (negated) ++at_;
    for (bool first = true; more() && (first || peek() != ']'); first = false) {
      if (all_.substr(at_).starts_with("[:")) {
        bytes |= named_class(at_);
        continue;
      }
      if (peek() == '\\' && at_ + 1 < all_.size() && escaped_class(all_[at_ + 1])) {
        bytes |= *escaped_class(all_[at_ + 1]);
        at_ += 2;
        continue;
      }
      const std::size_t at = at_;
      const auto low = member();
      auto high = low;
      if (more() && peek() == '-' && at_ + 1 < all_.size() && all_[at_ + 1] != ']') {
        ++at_;
        high = member();
      }
      if (error_ || !low || !high) break;
      if (*high < *low) fail(at, "this range ends before it begins");
      bytes |= range(*low, *high);
    }
    if (!error_ && !more()) fail(open, "this [ is never closed; \\[ stands for one");
    if (error_) return {};
    ++at_;
    bytes = cased(bytes);
    return negated ? any_character(bytes) : bytes_node(bytes);
  }

  std::string_view all_;
  std::size_t at_ = 0;
  bool any_case_ = false;
  std::optional<Error> error_;
};

// From the end to the beginning: each node is given the step that follows it.
class Compiler {
 public:
  // By what it took, too: nothing, repeated, adds no step.
  bool too_large() const {
    return compiled_.steps.size() > LinePattern::kMostSteps || visits_ > 4 * LinePattern::kMostSteps;
  }

  std::uint32_t add(Step step) {
    compiled_.steps.push_back(step);
    return static_cast<std::uint32_t>(compiled_.steps.size() - 1);
  }

  std::uint32_t compile(const Node& node, std::uint32_t next) {
    ++visits_;
    if (too_large()) return next;
    switch (node.kind) {
      case Node::Kind::kEmpty: return next;
      case Node::Kind::kBytes:
        return add({.kind = Step::Kind::kByte, .next = next, .other = 0, .set = set(node.bytes)});
      case Node::Kind::kBegin: return add({.kind = Step::Kind::kBegin, .next = next, .other = 0, .set = 0});
      case Node::Kind::kEnd: return add({.kind = Step::Kind::kEnd, .next = next, .other = 0, .set = 0});
      case Node::Kind::kSequence:
        for (auto part = node.parts.rbegin(); part != node.parts.rend(); ++part) next = compile(*part, next);
        return next;
      case Node::Kind::kEither: {
        std::uint32_t entry = compile(node.parts.back(), next);
        for (auto part = std::next(node.parts.rbegin()); part != node.parts.rend(); ++part) {
          entry = add({.kind = Step::Kind::kSplit, .next = compile(*part, next), .other = entry, .set = 0});
        }
        return entry;
      }
      case Node::Kind::kRepeat: return repeat(node, next);
    }
    return next;
  }

  CompiledPattern take(std::uint32_t start) {
    compiled_.start = start;
    return std::move(compiled_);
  }

 private:
  std::uint32_t repeat(const Node& node, std::uint32_t next) {
    const Node& part = node.parts.front();
    if (!node.most) {
      const std::uint32_t loop = add({.kind = Step::Kind::kSplit, .next = next, .other = next, .set = 0});
      const std::uint32_t body = compile(part, loop);
      compiled_.steps[loop].next = body;
      next = loop;
    } else {
      const std::uint32_t after = next;
      for (std::uint32_t i = node.least; i < *node.most && !too_large(); ++i) {
        next = add({.kind = Step::Kind::kSplit, .next = compile(part, next), .other = after, .set = 0});
      }
    }
    for (std::uint32_t i = 0; i < node.least && !too_large(); ++i) next = compile(part, next);
    return next;
  }

  std::uint32_t set(const ByteSet& bytes) {
    const auto found = std::find(compiled_.sets.begin(), compiled_.sets.end(), bytes);
    if (found != compiled_.sets.end()) return static_cast<std::uint32_t>(found - compiled_.sets.begin());
    compiled_.sets.push_back(bytes);
    return static_cast<std::uint32_t>(compiled_.sets.size() - 1);
  }

  CompiledPattern compiled_;
  std::size_t visits_ = 0;
};

}  // namespace

Result<CompiledPattern> compile_pattern(std::string_view pattern) {
  MONARCH_ASSIGN(const Node node, Parser(pattern).parse());
  Compiler compiler;
  const std::uint32_t matched = compiler.add({.kind = Step::Kind::kMatch, .next = 0, .other = 0, .set = 0});
  const std::uint32_t start = compiler.compile(node, matched);
  if (compiler.too_large()) {
    return Error{ErrorCode::kInvalid, text("`", printable(pattern), "` is too large with all its repetitions")};
  }
  return compiler.take(start);
}

}  // namespace monarch
