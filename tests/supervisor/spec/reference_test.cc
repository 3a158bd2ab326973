// configs/reference.yaml shows every key with its default, and what may stand there instead in comments: each of these
// is put in its place in turn, and is then taken, or refused as not built where its comment says so.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "supervisor/spec/schema/schema.h"
#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

using Lines = std::vector<std::string>;

Lines reference_lines() {
  std::ifstream file(CONFIGS "/reference.yaml", std::ios::binary);
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::size_t indent_of(const std::string& line) { return std::min(line.find_first_not_of(' '), line.size()); }

// "gang" of "  gang: all"; empty for a comment, an item of a list or a blank line.
std::string key_of(const std::string& line) {
  const std::size_t begin = indent_of(line);
  const std::size_t end = line.find(':', begin);
  if (begin == line.size() || line[begin] == '#' || line[begin] == '-' || end == std::string::npos) return "";
  return line.substr(begin, end - begin);
}

struct Alternative {
  std::size_t line = 0;  // of its comment
  std::size_t indent = 0;
  Lines lines;                 // as they are without the comment
  std::set<std::string> keys;  // which it replaces
  bool built = true;
};

// "# or instead of local, ssh: …" and "# also: …"
std::optional<Alternative> read_alternative(const Lines& all, std::size_t at) {
  const std::string& head = all[at];
  Alternative out{.line = at, .indent = indent_of(head), .lines = {}, .keys = {}, .built = true};
  std::string_view rest = std::string_view(head).substr(out.indent);
  const bool also = rest.starts_with("# also:");
  if (!also && !rest.starts_with("# or:") && !rest.starts_with("# or instead of ")) return std::nullopt;
  const std::size_t colon = rest.find(':');
  constexpr std::string_view kInstead = "# or instead of ";
  if (rest.starts_with(kInstead)) out.keys.insert(std::string(rest.substr(kInstead.size(), colon - kInstead.size())));
  out.built = rest.find("not built yet") == std::string_view::npos;
  rest.remove_prefix(colon + 1);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const std::string indent(out.indent, ' ');
  if (!rest.empty() && rest.front() != '#') {
    out.lines.push_back(indent + std::string(rest));
  } else {
    const std::string prefix = indent + "#   ";
    for (std::size_t i = at + 1; i < all.size() && all[i].starts_with(prefix); ++i)
      out.lines.push_back(indent + all[i].substr(prefix.size()));
  }
  for (const std::string& line : out.lines) {
    if (indent_of(line) == out.indent && !key_of(line).empty()) out.keys.insert(key_of(line));
  }
  return out;
}

// Without the keys of the same map that the alternative replaces.
std::string with(const Lines& all, const Alternative& alternative) {
  const auto inside = [&](std::size_t i) { return all[i].empty() || indent_of(all[i]) >= alternative.indent; };
  std::size_t begin = alternative.line;
  while (begin > 0 && inside(begin - 1)) --begin;
  std::size_t end = alternative.line;
  while (end + 1 < all.size() && inside(end + 1)) ++end;
  std::string out;
  bool dropping = false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i >= begin && i <= end && !all[i].empty() && indent_of(all[i]) == alternative.indent && !key_of(all[i]).empty())
      dropping = alternative.keys.contains(key_of(all[i]));
    if (i > end) dropping = false;
    if (i == alternative.line) {
      for (const std::string& line : alternative.lines) out += line + "\n";
    }
    if (!dropping) out += all[i] + "\n";
  }
  return out;
}

std::vector<Alternative> alternatives() {
  const Lines all = reference_lines();
  std::vector<Alternative> found;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (auto alternative = read_alternative(all, i)) found.push_back(std::move(*alternative));
  }
  return found;
}

TEST(Reference, HasAlternativesThatAreTakenOrRefusedAsTheySay) {
  const Lines all = reference_lines();
  const std::vector<Alternative> found = alternatives();
  EXPECT_GE(found.size(), 80U);
  const SpecSurroundings around{
      .home = "/home/u",
      .read_hosts = [](const std::string&) -> Result<std::string> { return std::string("n[1-4]\n"); },
      .count_gpus = [] { return 8U; }};
  for (const Alternative& alternative : found) {
    ASSERT_FALSE(alternative.lines.empty()) << "line " << alternative.line + 1;
    // Names of other meshes need one of that name.
    std::string yaml = with(all, alternative);
    const std::string other = "  other: {dims: {host: 2, gpu: 2}, program: [/bin/true]}\n";
    if (yaml.find("\n  other:\n") == std::string::npos) yaml.insert(yaml.find("  trainer:\n"), other);
    const SpecOutcome outcome = load_spec({.name = "reference.yaml", .text = yaml, .directory = "/home/u/job"}, around);
    const std::string label = text("line ", alternative.line + 1, ": ", alternative.lines.front(), "\n");
    if (alternative.built) {
      EXPECT_TRUE(outcome.loaded) << label << render(outcome);
      continue;
    }
    std::set<std::string> seen;
    for (const Diagnostic& d : outcome.diagnostics) seen.insert(d.id);
    EXPECT_EQ(seen, std::set<std::string>{"E0401"}) << label << render(outcome);
  }
}

TEST(Reference, ShowsEachWordBesideItsKey) {
  const Lines all = reference_lines();
  for (const KeyRow& row : spec_schema().rows()) {
    if (row.type != ValueType::kWord || row.path.ends_with("[]")) continue;
    const std::string key = text(row.path.substr(row.path.rfind('.') + 1), ":");
    for (const std::string& word : split_words(row.words)) {
      const bool shown = std::any_of(all.begin(), all.end(), [&](const std::string& line) {
        return line.find(key) != std::string::npos && line.find(word, line.find(key)) != std::string::npos;
      });
      EXPECT_TRUE(shown) << row.path << ": " << word;
    }
  }
}

// The test above proves nothing if a replacement leaves the replaced key in its place: that would be a duplicate.
TEST(Reference, PutsAnAlternativeInThePlaceOfItsKeys) {
  const Lines all = {
      "a: 1", "m:", "  # or: b: 3", "  b:", "    c: 2", "  d: 4", "  # or instead of d:", "  #   e: 5", "b: 6"};
  EXPECT_EQ(with(all, *read_alternative(all, 2)),
            "a: 1\nm:\n  b: 3\n  # or: b: 3\n  d: 4\n  # or instead of d:\n  #   e: 5\nb: 6\n");
  EXPECT_EQ(with(all, *read_alternative(all, 6)), "a: 1\nm:\n  # or: b: 3\n  b:\n    c: 2\n  e: 5\nb: 6\n");
}

}  // namespace
}  // namespace monarch
