#include "cli/import/shell_words.h"

#include <cctype>
#include <optional>
#include <utility>

#include "supervisor/core/spec/variables.h"
#include "supervisor/spec/schema/names.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

class WordSplitter {
 public:
  explicit WordSplitter(std::string_view line) : line_(line) {}

  Result<std::vector<ShellWord>> split() {
    while (at_ < line_.size() && !wrong_) step();
    if (wrong_) return *wrong_;
    finish_word();
    return std::move(words_);
  }

 private:
  char next() const { return at_ + 1 < line_.size() ? line_[at_ + 1] : '\0'; }

  void refuse(const std::string& what) {
    if (!wrong_) wrong_ = Error{ErrorCode::kInvalid, text(what, " (character ", at_ + 1, ")")};
  }

  void add(char c) {
    word_.text.push_back(c);
    in_word_ = true;
  }

  void finish_word() {
    if (in_word_) words_.push_back(std::exchange(word_, {}));
    in_word_ = false;
  }

  void step() {
    const char c = line_[at_];
    switch (c) {
      case ' ':
      case '\t': finish_word(); break;
      case '\n': return end_of_line();
      case '\'': return single_quotes();
      case '"': return double_quotes();
      case '\\': return backslash();
      case '$': return dollar();
      case '`': return refuse("a command in backquotes is not run: write what it prints");
      case '#':
        if (!in_word_) return comment();
        add(c);
        break;
      case '|':
      case '&':
      case ';':
      case '<':
      case '>':
      case '(':
      case ')':
        return refuse(text("`", c, "` is for a shell; one command alone can be translated, and quotes keep it"));
      case '*':
      case '?':
      case '[':
        if (word_.pattern == '\0') {
          word_.pattern = c;
          word_.pattern_at = at_ + 1;
        }
        add(c);
        break;
      case '~':
        if (!in_word_) return refuse("`~` is not expanded: write the whole path, or quote it");
        add(c);
        break;
      default: add(c);
    }
    ++at_;
  }

  void end_of_line() {
    finish_word();
    const std::size_t more = line_.find_first_not_of(" \t\n", at_);
    if (more != std::string_view::npos && !words_.empty())
      return refuse("a second command: one alone can be translated");
    at_ = more == std::string_view::npos ? line_.size() : more;
  }

  void comment() {
    const std::size_t end = line_.find('\n', at_);
    at_ = end == std::string_view::npos ? line_.size() : end;
  }

  void single_quotes() {
    const std::size_t end = line_.find('\'', at_ + 1);
    if (end == std::string_view::npos) return refuse("a ' is not closed");
    word_.text += line_.substr(at_ + 1, end - at_ - 1);
    in_word_ = true;
    at_ = end + 1;
  }

  void double_quotes() {
    const std::size_t begin = at_;
    in_word_ = true;
    for (++at_; at_ < line_.size() && line_[at_] != '"'; ++at_) {
      const char c = line_[at_];
      if (c == '`') return refuse("a command in backquotes is not run: write what it prints");
      if (c == '$' && next() == '(') return refuse("`$(...)` is not run: write what it prints");
      if (c == '$' && starts_name(next())) word_.expands = true;
      const bool escapes = c == '\\' && std::string_view("$`\"\\\n").find(next()) != std::string_view::npos;
      if (escapes && next() == '\n') {
        ++at_;
      } else {
        add(escapes ? line_[++at_] : c);
      }
    }
    if (at_ < line_.size()) {
      ++at_;
    } else {
      at_ = begin;
      refuse("a \" is not closed");
    }
  }

  void backslash() {
    if (at_ + 1 >= line_.size()) return refuse("nothing follows the \\");
    if (next() != '\n') add(next());  // a continued line is nothing at all
    at_ += 2;
  }

  static bool starts_name(char c) {
    return c == '{' || c == '_' || c == '@' || c == '*' || std::isalnum(static_cast<unsigned char>(c)) != 0;
  }

  void dollar() {
    if (next() == '(') return refuse("`$(...)` is not run: write what it prints");
    if (starts_name(next())) word_.expands = true;
    add('$');
    ++at_;
    // The braces of ${X:-a b} hold what belongs to it.
    if (at_ >= line_.size() || line_[at_] != '{') return;
    const std::size_t end = line_.find('}', at_);
    if (end == std::string_view::npos) return refuse("a { is not closed");
    word_.text += line_.substr(at_, end + 1 - at_);
    at_ = end + 1;
  }

  std::string_view line_;
  std::size_t at_ = 0;
  std::vector<ShellWord> words_;
  ShellWord word_;
  bool in_word_ = false;
  std::optional<Error> wrong_;
};

}  // namespace

Result<std::vector<ShellWord>> split_shell_words(std::string_view line) { return WordSplitter(line).split(); }

bool is_assignment(const ShellWord& word) {
  const std::size_t sign = word.text.find('=');
  return sign != std::string::npos && is_variable(std::string_view(word.text).substr(0, sign));
}

}  // namespace monarch
