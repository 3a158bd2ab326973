// Every broken/NAME.yaml is refused with exactly the words of broken/NAME.txt. To write the .txt files anew after a change
// of words: MONARCH_TEST_REGENERATE=1; then read the difference.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
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

TEST(BrokenSpecs, AreRefusedInTheseWords) {
  const bool regenerate = std::getenv("MONARCH_TEST_REGENERATE") != nullptr;
  const auto specs = broken_specs();
  ASSERT_GE(specs.size(), 80U);
  for (const auto& path : specs) {
    const SpecSource source = source_of(path);
    const SpecOutcome outcome = load_spec(source);
    EXPECT_FALSE(outcome.loaded) << path;
    EXPECT_FALSE(outcome.diagnostics.empty()) << path;
    const std::string shown = render(outcome.diagnostics, source.text);
    auto golden = path;
    golden.replace_extension(".txt");
    if (regenerate) std::ofstream(golden, std::ios::binary) << shown;
    EXPECT_EQ(shown, contents(golden)) << path;
  }
}

TEST(BrokenSpecs, CoverEveryErrorOfASpec) {
  std::set<std::string> seen;
  for (const auto& path : broken_specs()) {
    for (const Diagnostic& d : load_spec(source_of(path)).diagnostics) seen.insert(d.id);
  }
  // E0002, E0012 and E0014 take large files, which bombs_test.cc makes; E0013 is no fault of a text; E0015, E0016 and E0308
  // are those of flags. The golden command lines show these, and all of E09xx; the lint error_ids holds that.
  const std::set<std::string> elsewhere = {"E0002", "E0012", "E0013", "E0014", "E0015", "E0016", "E0308"};
  for (const ErrorDoc& doc : all_errors()) {
    const std::string id(doc.id);
    if (id.starts_with("E09")) continue;
    EXPECT_NE(seen.count(id), elsewhere.count(id)) << id << " is shown by no broken spec";
  }
}

// An error of arithmetic prints a value; written instead, it must work.
TEST(BrokenSpecs, EveryErrorHasAPlaceOrNoLine) {
  for (const auto& path : broken_specs()) {
    const SpecSource source = source_of(path);
    const auto lines = static_cast<std::uint32_t>(std::count(source.text.begin(), source.text.end(), '\n') + 1);
    for (const Diagnostic& d : load_spec(source).diagnostics) {
      EXPECT_LE(d.line, lines) << path;
      EXPECT_EQ(d.line == 0, d.column == 0) << path;
      EXPECT_FALSE(d.message.empty()) << path;
    }
  }
}

}  // namespace
}  // namespace monarch
