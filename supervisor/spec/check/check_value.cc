#include "supervisor/spec/check/check_value.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "supervisor/core/spec/variables.h"
#include "supervisor/spec/schema/names.h"
#include "supervisor/spec/yaml/scalar.h"
#include "supervisor/spec/yaml/source_text.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

void report_wrong(const YamlNode& node, std::string_view id, std::string_view what, const std::string& path,
                  WrongScalar wrong, Report& report) {
  report.error(id, node.place,
               {.message = text("`", path, "` takes ", what, ", not ", quoted_value(node.text)),
                .label = std::move(wrong.label),
                .help = wrong.right.empty() ? "" : text("did you mean `", wrong.right, "`?")});
}

struct RangeCheck {
  std::string value;
  std::string least;
  std::string most;
  bool below = false;
  bool above = false;
};

void report_range(const YamlNode& node, const std::string& path, const RangeCheck& range, Report& report) {
  if (!range.below && !range.above) return;
  const std::string bound = range.below ? text("at least ", range.least) : text("at most ", range.most);
  report.error("E0206", node.place,
               {.message = text("`", path, "` is ", bound, ", not ", range.value),
                .label = range.below ? "too small" : "too large",
                .help = text("`", range.below ? range.least : range.most, "` would work")});
}

void check_integer(const YamlNode& node, const KeyRow& row, const std::string& path, Report& report) {
  const Scalar<std::int64_t> parsed = parse_integer(node);
  if (!parsed.value) {
    const std::string what =
        row.words.empty() ? "an integer" : text("an integer or ", join(split_words(row.words), ", "));
    return report_wrong(node, "E0201", what, path, parsed.wrong, report);
  }
  const std::int64_t value = *parsed.value;
  report_range(node, path, {text(value), text(row.least), text(row.most), value<row.least, value> row.most}, report);
}

void check_number(const YamlNode& node, const KeyRow& row, const std::string& path, Report& report) {
  const Scalar<double> parsed = parse_number(node);
  if (!parsed.value) return report_wrong(node, "E0207", "a number", path, parsed.wrong, report);
  const bool above = *parsed.value > static_cast<double>(row.most);
  report_range(node, path,
               {node.text, text(row.least), text(row.most), *parsed.value < static_cast<double>(row.least), above},
               report);
}

void check_duration(const YamlNode& node, const KeyRow& row, const std::string& path, Report& report) {
  Scalar<Duration> parsed = parse_duration(node);
  if (!parsed.value) {
    for (const std::string_view never : {"infinity", "infinite", "inf", "unlimited", "never", "forever", "off", "no"}) {
      if (node.text == never && word_in(row.words, "none")) parsed.wrong.right = "none";
    }
    const std::string what =
        row.words.empty() ? "a duration" : text("a duration or ", join(split_words(row.words), ", "));
    return report_wrong(node, "E0203", what, path, parsed.wrong, report);
  }
  constexpr std::int64_t kTenYears = 10 * 365 * 86'400'000LL;  // far beyond any deadline, far below an overflow
  const Duration least = Duration::milliseconds(row.least);
  const Duration most = Duration::milliseconds(std::min(row.most, kTenYears));
  report_range(node, path,
               {node.text, write_duration(least), write_duration(most), *parsed.value<least, *parsed.value> most},
               report);
}

void check_size(const YamlNode& node, const KeyRow& row, const std::string& path, Report& report) {
  const Scalar<std::uint64_t> parsed = parse_size(node);
  if (!parsed.value) return report_wrong(node, "E0204", "a size", path, parsed.wrong, report);
  const bool below = *parsed.value < static_cast<std::uint64_t>(row.least);
  report_range(node, path, {node.text, text(row.least, "B"), "", below, false}, report);
}

void check_bool(const YamlNode& node, const std::string& path, Report& report) {
  const Scalar<bool> parsed = parse_bool(node);
  if (!parsed.value) report_wrong(node, "E0202", "true or false", path, parsed.wrong, report);
}

void check_word(const YamlNode& node, const KeyRow& row, const std::string& path, Report& report) {
  const std::vector<std::string> words = split_words(row.words);
  std::string upper = node.text;
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  const std::string bare = upper.starts_with("SIG") ? upper.substr(3) : upper;
  std::string lower = node.text;
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  std::string guess = word_meant(row, lower);
  if (guess.empty()) guess = word_in(row.words, bare) ? bare : nearest(node.text, words).value_or("");
  const std::string choices = text("one of ", join(words, ", "), row.or_map ? ", or a map" : "");
  // So many would hide what was meant.
  constexpr std::size_t kMostUnderCaret = 12;
  const bool many = words.size() > kMostUnderCaret;
  report.error("E0205", node.place,
               {.message = text("`", path, "` cannot be ", quoted_value(node.text)),
                .label = many ? text("none of its ", words.size(), " words") : choices,
                .help = guess.empty() ? (many ? choices : "") : text("did you mean `", guess, "`?")});
}

void check_text(const YamlNode& node, const KeyRow& row, const std::string& path, Report& report) {
  if (node.text.find('\0') != std::string::npos) {
    report.error("E0210", node.place,
                 {.message = text("`", path, "` contains a NUL"), .label = "no program can be given one"});
  } else if (!row.bytes && !is_utf8(node.text)) {
    report.error("E0210", node.place, {.message = text("`", path, "` is no text"), .label = "its bytes are not UTF-8"});
  } else if (static_cast<std::int64_t>(node.text.size()) < row.least) {
    report.error("E0210", node.place, {.message = text("`", path, "` is empty"), .label = "a text is needed"});
  }
}

void check_ports(const YamlNode& node, const std::string& path, Report& report) {
  const std::size_t dash = node.text.find('-');
  YamlNode low{.kind = YamlNode::Kind::kScalar, .text = node.text.substr(0, dash)};
  YamlNode high{.kind = YamlNode::Kind::kScalar, .text = dash == std::string::npos ? "" : node.text.substr(dash + 1)};
  const auto first = parse_integer(low).value;
  const auto last = parse_integer(high).value;
  if (first && last && *first >= 1 && *first <= *last && *last <= 65'535) return;
  report.error("E0206", node.place,
               {.message = text("`", path, "` takes a range of ports, not ", quoted_value(node.text)),
                .label = "from 1 to 65535, the smaller first",
                .help = "a range is written `20000-20999`"});
}

// What a value says, so that two ways to write it compare equal; nothing for what has no such form.
std::optional<std::string> canonical_value(const Schema& schema, const YamlNode& node, const KeyRow& row) {
  if (node.is(YamlNode::Kind::kList)) {
    const KeyRow* item_row = schema.find_row(text(row.path, ".[]"));
    std::string out = "[";
    for (const YamlNode& item : node.items) {
      const auto part = item_row == nullptr ? std::nullopt : canonical_value(schema, item, *item_row);
      if (!part) return std::nullopt;
      out += *part + '\n';
    }
    return out;
  }
  if (node.is(YamlNode::Kind::kMap)) return node.items.empty() ? std::optional<std::string>("{") : std::nullopt;
  if (!node.is(YamlNode::Kind::kScalar)) return std::nullopt;
  if (word_in(row.words, node.text)) return node.text;
  if (row.type == ValueType::kDuration) {
    const auto value = parse_duration(node).value;
    return value ? std::optional(text(value->count_nanoseconds())) : std::nullopt;
  }
  if (row.type == ValueType::kNumber) {
    const auto value = parse_number(node).value;
    return value ? std::optional(text(*value)) : std::nullopt;
  }
  if (row.type == ValueType::kSize) {
    const auto value = parse_size(node).value;
    return value ? std::optional(text(*value)) : std::nullopt;
  }
  return node.text;
}

}  // namespace

void check_scalar(const YamlNode& node, const KeyRow& row, const std::string& path, Report& report) {
  if (word_in(row.words, node.text)) return;
  switch (row.type) {
    case ValueType::kInteger: return check_integer(node, row, path, report);
    case ValueType::kNumber: return check_number(node, row, path, report);
    case ValueType::kBool: return check_bool(node, path, report);
    case ValueType::kDuration: return check_duration(node, row, path, report);
    case ValueType::kSize: return check_size(node, row, path, report);
    case ValueType::kText: return check_text(node, row, path, report);
    case ValueType::kName: return check_name(node.text, node.place, report);
    case ValueType::kWord: return check_word(node, row, path, report);
    case ValueType::kPorts: return check_ports(node, path, report);
    case ValueType::kMap:
    case ValueType::kNamedMap:
    case ValueType::kList:
    case ValueType::kHosts:
    case ValueType::kAny: return;  // no scalars: check.cc does not bring them here
  }
}

void check_name(std::string_view name, Place place, Report& report) {
  if (is_reserved_name(name)) {
    report.error("E0109", place,
                 {.message = text("the name `", name, "` is reserved"),
                  .label = "means something on the command line and in `gang`",
                  .help = text("`", name, "_1` would work")});
  } else if (!is_name(name)) {
    const std::string guess = nearest_name(name);
    report.error("E0108", place,
                 {.message = text(quoted_value(name), " is not a name"),
                  .label = "a-z, 0-9 and _, a letter first, at most 32 characters",
                  .help = guess.empty() ? "" : text("`", guess, "` would work")});
  }
}

void check_variable(std::string_view name, Place place, Report& report) {
  if (!is_variable(name)) {
    report.error("E0209", place,
                 {.message = text(quoted_value(name), " is not the name of an environment variable"),
                  .label = "letters, digits and _, no digit first"});
  } else if (is_variable_of_ours(name)) {
    report.error("E0209", place,
                 {.message = text("`", name, "` is set by monarch for each rank"),
                  .label = "would be overwritten",
                  .help = "`monarch plan` shows the values that ranks get"});
  }
}

bool is_built(const Schema& schema, const YamlNode& node, const KeyRow& row) {
  if (row.unbuilt.empty()) return true;
  if (row.unbuilt != "*") return !node.is(YamlNode::Kind::kScalar) || !word_in(row.unbuilt, node.text);
  if (row.default_value.empty()) return false;
  if (node.is(YamlNode::Kind::kScalar) && word_in(row.built, node.text)) return true;
  Report nobody("", row.default_value);
  const std::optional<YamlNode> wanted = read_yaml(row.default_value, nobody);
  return wanted && canonical_value(schema, *wanted, row) == canonical_value(schema, node, row) &&
         canonical_value(schema, node, row).has_value();
}

}  // namespace monarch
