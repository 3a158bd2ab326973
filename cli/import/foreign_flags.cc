#include "cli/import/foreign_flags.h"

#include <algorithm>

#include "supervisor/spec/schema/schema.h"
#include "supervisor/spec/yaml/scalar.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

class Reader {
 public:
  Reader(const FlagGrammar& grammar, const std::vector<ForeignFlag>& table, Translation& translation,
         std::vector<ShellWord>& words)
      : grammar_(grammar), table_(table), translation_(translation), words_(words) {}

  std::optional<Complaint> read() {
    while (at_ < words_.size()) {
      const ShellWord word = words_[at_];
      if (word.text == "--") {
        ++at_;
        break;
      }
      if (word.text.size() < 2 || word.text.front() != '-') break;
      ++at_;
      const bool is_long = word.text[1] == '-' || (grammar_.long_with_one_dash && find(name_of(word.text)) != nullptr);
      if (auto wrong = is_long ? read_long(word) : read_short(word)) return wrong;
    }
    words_.erase(words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(at_));
    return std::nullopt;
  }

 private:
  Complaint refused(const std::string& message, const std::string& help) const {
    return refused_line(grammar_.launcher, printable(message), printable(help));
  }

  std::string name_of(std::string_view word) const {
    std::string name(word.substr(0, word.find('=')));
    if (grammar_.underscores) std::replace(name.begin(), name.end(), '_', '-');
    return name;
  }

  const ForeignFlag* find(const std::string& name) const {
    const auto found =
        std::find_if(table_.begin(), table_.end(), [&](const ForeignFlag& f) { return word_in(f.names, name); });
    return found == table_.end() ? nullptr : &*found;
  }

  Complaint unknown(const std::string& name) const {
    std::vector<std::string> known;
    for (const ForeignFlag& flag : table_) {
      for (std::string& each : split_words(flag.names)) known.push_back(std::move(each));
    }
    const auto near = nearest(name, known);
    return refused(text("has no flag `", name, "` that is known here"),
                   near ? text("did you mean `", *near, "`?") : "leave it out, and put what it does into the spec");
  }

  std::optional<Complaint> read_long(const ShellWord& word) {
    const std::string name = name_of(word.text);
    const ForeignFlag* flag = find(name);
    if (flag == nullptr) return unknown(name);
    const std::size_t sign = word.text.find('=');
    if (sign != std::string::npos) {
      if (flag->takes == FlagTakes::kNothing)
        return refused(text("`", name, "` takes no value"), text("write `", name, "`"));
      return use(*flag, name, {.text = word.text.substr(sign + 1), .expands = word.expands, .pattern = word.pattern});
    }
    return read_value(*flag, name);
  }

  // -N2, -N 2, and -lu, which is -l and -u.
  std::optional<Complaint> read_short(const ShellWord& word) {
    std::string rest = word.text.substr(1);
    while (!rest.empty()) {
      const std::string name = text("-", rest.front());
      const ForeignFlag* flag = find(name);
      if (flag == nullptr) return unknown(word.text);
      rest.erase(0, 1);
      if (flag->takes == FlagTakes::kValue && !rest.empty()) {
        if (rest.front() == '=') rest.erase(0, 1);
        return use(*flag, name, {.text = rest, .expands = word.expands, .pattern = word.pattern});
      }
      if (auto wrong = read_value(*flag, name)) return wrong;
    }
    return std::nullopt;
  }

  std::optional<Complaint> read_value(const ForeignFlag& flag, const std::string& name) {
    const std::size_t count = flag.takes == FlagTakes::kTwoValues ? 2 : flag.takes == FlagTakes::kValue ? 1 : 0;
    if (words_.size() - at_ < count)
      return refused(text("`", name, "` needs ", count == 1 ? "a value" : "two values"), "");
    ShellWord value;
    for (std::size_t i = 0; i < count; ++i) {
      const ShellWord& word = words_[at_++];
      value.text += text(i > 0 ? " " : "", word.text);
      value.expands = value.expands || word.expands;
      if (value.pattern == '\0') value.pattern = word.pattern;
    }
    return use(flag, name, value);
  }

  std::optional<Complaint> use(const ForeignFlag& flag, const std::string& name, const ShellWord& value) {
    const std::string shown = value.text.empty() ? name : text(name, " ", value.text);
    if (!flag.use) {
      translation_.notes.push_back(text(shown, ": ", flag.note));
      return std::nullopt;
    }
    if (value.expands) {
      return refused(text("`", shown, "`: variables are not expanded"), "write the value instead");
    }
    // A shell leaves node[01-04] as it is where no file is called so.
    if (value.pattern == '*' || value.pattern == '?') {
      return refused(text("`", shown, "`: names of files are not looked up"), "write the value instead, or quote it");
    }
    const auto wrong = flag.use(translation_, value.text);
    return wrong ? std::optional(refused(text("`", shown, "`: ", *wrong), "")) : std::nullopt;
  }

  const FlagGrammar& grammar_;
  const std::vector<ForeignFlag>& table_;
  Translation& translation_;
  std::vector<ShellWord>& words_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<Complaint> read_foreign_flags(const FlagGrammar& grammar, const std::vector<ForeignFlag>& table,
                                            Translation& translation, std::vector<ShellWord>& words) {
  return Reader(grammar, table, translation, words).read();
}

Complaint refused_line(std::string_view launcher, std::string_view message, const std::string& help) {
  return {.id = "E0933", .message = text(launcher, " ", message), .help = help};
}

FlagUse use_number(std::optional<std::uint32_t>& into) {
  return [&into](Translation&, const std::string& value) -> WrongValue {
    into = positive(value);
    return into ? std::nullopt : WrongValue("a number is meant");
  };
}

std::optional<std::uint32_t> positive(std::string_view written) {
  constexpr std::int64_t kMost = 1'000'000;
  const YamlNode node{.kind = YamlNode::Kind::kScalar, .text = std::string(written)};
  const auto value = parse_integer(node).value;
  if (!value || *value < 1 || *value > kMost) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

WrongValue use_input(Translation& t, std::string_view flag, const std::string& value) {
  if (value == "none") return std::nullopt;
  const bool is_rank = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
  t.keys["stdin"] = is_rank ? value : "all";
  if (is_rank || value == "all") return std::nullopt;
  t.notes.push_back(text(flag, " ", value, ": `monarch run` reads its own input: append < ", value));
  return std::nullopt;
}

}  // namespace monarch
