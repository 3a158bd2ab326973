// Every broken/NAME.yaml is refused with exactly the words of broken/NAME.txt; broken/ssh_NAME.yaml as by a build that
// has SSH, which may read a file of hosts beside it. To write the .txt files anew after a change of words:
// MONARCH_TEST_REGENERATE=1; then read the difference.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::filesystem::path> broken_specs() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(SPEC_TESTS "/broken")) {
    if (entry.path().extension() == ".yaml") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

SpecSource source_of(const std::filesystem::path& path) {
  return {.name = path.filename().string(), .text = contents(path), .directory = "/home/u/job"};
}

SpecOutcome load(const SpecSource& source) {
  const auto read = [](const std::string& path) -> Result<std::string> {
    return contents(std::filesystem::path(SPEC_TESTS "/broken") / std::filesystem::path(path).filename());
  };
  const bool ssh = source.name.starts_with("ssh_");
  return load_spec(source,
                   {.home = "/home/u", .read_hosts = read, .unbuilt = ssh ? UnbuiltKeys::kTake : UnbuiltKeys::kRefuse});
}

TEST(BrokenSpecs, AreRefusedInTheseWords) {
  const bool regenerate = std::getenv("MONARCH_TEST_REGENERATE") != nullptr;
  const auto specs = broken_specs();
  ASSERT_GE(specs.size(), 80U);
  for (const auto& path : specs) {
    const SpecSource source = source_of(path);
    const SpecOutcome outcome = load(source);
    EXPECT_FALSE(outcome.loaded) << path;
    EXPECT_FALSE(outcome.diagnostics.empty()) << path;
    const std::string shown = render(outcome);
    auto golden = path;
    golden.replace_extension(".txt");
    if (regenerate) std::ofstream(golden, std::ios::binary) << shown;
    EXPECT_EQ(shown, contents(golden)) << path;
  }
}

TEST(BrokenSpecs, CoverEveryErrorOfASpec) {
  std::set<std::string> seen;
  for (const auto& path : broken_specs()) {
    for (const Diagnostic& d : load(source_of(path)).diagnostics) seen.insert(d.id);
  }
  // E0002, E0012 and E0014 take large files, which bombs_test.cc makes; E0013, E0216, E0224, E0317 and E0334 are no
  // faults of a text; E0015, E0016 and E0308 are those of flags. The golden command lines show these, and all of E09xx;
  // the lint error_ids holds that.
  const std::set<std::string> elsewhere = {"E0002", "E0012", "E0013", "E0014", "E0015", "E0016",
                                           "E0216", "E0224", "E0308", "E0317", "E0334"};
  for (const ErrorDoc& doc : all_errors()) {
    const std::string id(doc.id);
    // Those of scenarios are shown beside these (tests/supervisor/drill/scenario/broken).
    if (id.starts_with("E09") || id.starts_with("E05")) continue;
    EXPECT_NE(seen.count(id), elsewhere.count(id)) << id << " is shown by no broken spec";
  }
}

// X of "did you mean `X`?" and of "`X` would work", where one value or key is meant.
std::string suggested(const std::string& help) {
  for (const auto& [begin, end] :
       {std::pair<std::string, std::string>{"did you mean `", "`?"}, {"`", "` would work"}}) {
    if (!help.starts_with(begin) || !help.ends_with(end) || help.size() <= begin.size() + end.size()) continue;
    std::string inner = help.substr(begin.size(), help.size() - begin.size() - end.size());
    const bool list_or_map = inner.front() == '[' || inner.front() == '{';
    if (inner.find('`') == std::string::npos && (list_or_map || inner.find(": ") == std::string::npos)) return inner;
  }
  return "";
}

// The spec with `instead` where the diagnostic points; nothing where it points at the bracket of a whole list, or a
// line of text that is not all ASCII.
std::optional<std::string> written_instead(const std::string& yaml, const Diagnostic& d, const std::string& instead) {
  std::size_t line = 0;
  for (std::uint32_t i = 1; i < d.line; ++i) line = yaml.find('\n', line) + 1;
  const std::string whole = yaml.substr(line, yaml.find('\n', line) - line);
  const bool ascii =
      std::all_of(whole.begin(), whole.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  const std::size_t at = line + d.column - 1;
  if (!ascii || d.length == 0 || yaml[at] == '[' || yaml[at] == '{') return std::nullopt;
  return yaml.substr(0, at) + instead + yaml.substr(at + d.length);
}

TEST(BrokenSpecs, LoseTheFaultWhereTheSuggestionIsWrittenInstead) {
  std::size_t tried = 0;
  for (const auto& path : broken_specs()) {
    SpecSource source = source_of(path);
    const std::string yaml = source.text;
    for (const Diagnostic& d : load(source).diagnostics) {
      if (d.source != 0) continue;  // it stands in another file
      const std::string instead = suggested(d.help);
      const auto mended = d.line == 0 || instead.empty() ? std::nullopt : written_instead(yaml, d, instead);
      // A key that belongs into another map is suggested with its path, and cannot stand here.
      if (!mended || (d.id == "E0107" && instead.find('.') != std::string::npos)) continue;
      ++tried;
      source.text = *mended;
      const auto left = load(source).diagnostics;
      const bool still = std::any_of(left.begin(), left.end(), [&](const Diagnostic& other) {
        return other.id == d.id && other.line == d.line && other.column == d.column;
      });
      const bool unreadable =
          std::any_of(left.begin(), left.end(), [](const Diagnostic& other) { return other.id < "E0100"; });
      EXPECT_FALSE(still || unreadable) << path << ": " << d.message << "\nhelp: " << d.help << "\n" << *mended;
    }
  }
  EXPECT_GE(tried, 100U);
}

TEST(BrokenSpecs, EveryErrorHasAPlaceOrNoLine) {
  for (const auto& path : broken_specs()) {
    const SpecOutcome outcome = load(source_of(path));
    for (const Diagnostic& d : outcome.diagnostics) {
      const std::string& where = outcome.sources.at(d.source).text;
      const auto lines = static_cast<std::uint32_t>(std::count(where.begin(), where.end(), '\n') + 1);
      EXPECT_LE(d.line, lines) << path;
      EXPECT_EQ(d.line == 0, d.column == 0) << path;
      EXPECT_FALSE(d.message.empty()) << path;
    }
  }
}

}  // namespace
}  // namespace monarch
