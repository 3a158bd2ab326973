#include "supervisor/spec/check_value.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "supervisor/spec/hostlist.h"
#include "supervisor/spec/names.h"
#include "supervisor/spec/scalar.h"
#include "supervisor/spec/suggest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kLongestQuote = 60;  // of a value in a message

std::string quote(std::string_view value) {
  return value.size() <= kLongestQuote ? text("`", value, "`") : text("`", value.substr(0, kLongestQuote), "...`");
}

void report_wrong(const YamlNode& node, std::string_view id, std::string_view what, const std::string& path,
                  WrongScalar wrong, Report& report) {
  report.error(id, node.place,
               {.message = text("`", path, "` takes ", what, ", not ", quote(node.text)),
                .label = std::move(wrong.label),
                .help = wrong.right.empty() ? "" : text("did you mean `", wrong.right, "`?")});
}

struct Range {
  std::string value;
  std::string least;
  std::string most;
  bool below = false;
  bool above = false;
};

void report_range(const YamlNode& node, const std::string& path, const Range& range, Report& report) {
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
  const auto guess = word_in(row.words, bare) ? std::optional(bare) : nearest(node.text, words);
  const std::string others = row.or_map ? ", or a map" : "";
  report.error("E0205", node.place,
               {.message = text("`", path, "` cannot be ", quote(node.text)),
                .label = text("one of ", join(words, ", "), others),
                .help = guess ? text("did you mean `", *guess, "`?") : ""});
}

void check_text(const YamlNode& node, const KeyRow& row, const std::string& path, Report& report) {
  if (node.text.find('\0') != std::string::npos) {
    report.error("E0210", node.place,
                 {.message = text("`", path, "` contains a NUL"), .label = "no program can be given one"});
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
               {.message = text("`", path, "` takes a range of ports, not ", quote(node.text)),
                .label = "from 1 to 65535, the smaller first",
                .help = "a range is written `20000-20999`"});
}

// What a value says, so that two ways to write it compare equal; nothing for what has no such form.
std::optional<std::string> canonical(const YamlNode& node, const KeyRow& row) {
  if (node.is(YamlNode::Kind::kList)) {
    const KeyRow* item_row = find_row(text(row.path, ".[]"));
    std::string out = "[";
    for (const YamlNode& item : node.items) {
      const auto part = item_row == nullptr ? std::nullopt : canonical(item, *item_row);
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
                 {.message = text(quote(name), " is not a name"),
                  .label = "a-z, 0-9 and _, a letter first, at most 32 characters",
                  .help = guess.empty() ? "" : text("`", guess, "` would work")});
  }
}

void check_variable(std::string_view name, Place place, Report& report) {
  if (!is_variable(name)) {
    report.error("E0209", place,
                 {.message = text(quote(name), " is not the name of an environment variable"),
                  .label = "letters, digits and _, no digit first"});
  } else if (is_variable_of_ours(name)) {
    report.error("E0209", place,
                 {.message = text("`", name, "` is set by monarch for each rank"),
                  .label = "would be overwritten",
                  .help = "`monarch plan` shows the values that ranks get"});
  }
}

namespace {

bool is_user_name(std::string_view name) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  constexpr std::string_view kOthers = "0123456789.-";
  if (name.empty() || name.size() > 64 || kLetters.find(name.front()) == std::string_view::npos) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) {
    return kLetters.find(c) != std::string_view::npos || kOthers.find(c) != std::string_view::npos;
  });
}

// A name, or an address of IPv4 or IPv6.
bool is_address(std::string_view address) {
  const bool v6 = address.find(':') != std::string_view::npos;
  return v6 ? address.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos && address.size() <= 45
            : is_host_name(address);
}

// The values of {name, address, user}: they become arguments of other programs (X14).
void check_host_map(const YamlNode& item, Report& report) {
  struct Rule {
    std::string_view key;
    bool (*right)(std::string_view);
    std::string_view what;
  };
  constexpr Rule kRules[] = {{"name", is_host_name, "the name of a host"},
                             {"address", is_address, "the address of a host"},
                             {"user", is_user_name, "the name of a user"}};
  for (const Rule& rule : kRules) {
    const YamlNode* value = item.find(rule.key);
    if (value == nullptr || value->is(YamlNode::Kind::kRefused)) continue;
    if (value->is(YamlNode::Kind::kScalar) && rule.right(value->text)) continue;
    const bool scalar = value->is(YamlNode::Kind::kScalar);
    report.error("E0208", value->place,
                 {.message = text("`", rule.key, "` of a host takes ", rule.what, ", not ",
                                  scalar ? quote(value->text) : std::string(kind_name(*value))),
                  .label = "letters, digits, `.`, `-` and `_`, and no dash first",
                  .help = ""});
  }
}

}  // namespace

void check_hosts(const YamlNode& node, const std::string& path, Report& report) {
  const std::size_t before = report.count();
  std::string list;
  if (node.is(YamlNode::Kind::kScalar)) list = node.text;
  for (const YamlNode& item : node.items) {
    if (!list.empty()) list += ",";
    if (item.is(YamlNode::Kind::kScalar)) list += item.text;
    const YamlNode* name = item.find("name");
    for (const YamlKey& key : item.keys) {
      if (key.text == "name" || key.text == "address" || key.text == "user") continue;
      report.error("E0107", key.place,
                   {.message = text("unknown key `", key.text, "`"),
                    .label = text("not a key of a host"),
                    .help = "the keys here are: name, address, user"});
    }
    if (item.is(YamlNode::Kind::kMap)) check_host_map(item, report);
    if (item.is(YamlNode::Kind::kMap) && name != nullptr) list += name->text;
    if (item.is(YamlNode::Kind::kMap) && name == nullptr) {
      report.error("E0101", item.place, {.message = text("`", path, "`: a host without `name`")});
      return;
    }
  }
  if (report.count() > before) return;  // a list without what was refused would be another
  if (node.is(YamlNode::Kind::kMap) || list.empty()) {
    report.error("E0208", node.place,
                 {.message = text("`", path, "` takes a list of hosts, not ", kind_name(node)),
                  .label = "no hosts",
                  .help = "write `node[01-20]` or `[node01, node02]`"});
    return;
  }
  const auto hosts = expand_hostlist(list);
  if (!hosts.ok()) {
    report.error("E0208", node.place,
                 {.message = text("`", path, "` is not a list of hosts"),
                  .label = hosts.error().message,
                  .help = "write `node[01-20]` or `[node01, node02]`"});
  }
}

bool is_built(const YamlNode& node, const KeyRow& row) {
  if (row.unbuilt.empty()) return true;
  if (row.unbuilt != "*") return !node.is(YamlNode::Kind::kScalar) || !word_in(row.unbuilt, node.text);
  if (row.default_value.empty()) return false;
  if (node.is(YamlNode::Kind::kScalar) && word_in(row.built, node.text)) return true;
  Report nobody("", row.default_value);
  const std::optional<YamlNode> wanted = read_yaml(row.default_value, nobody);
  return wanted && canonical(*wanted, row) == canonical(node, row) && canonical(node, row).has_value();
}

}  // namespace monarch
