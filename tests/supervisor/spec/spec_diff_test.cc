#include "supervisor/spec/spec_diff.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

TEST(SpecDiff, NamesEachKeyThatDiffers) {
  const auto changes =
      spec_changes("a: 1\nb: {c: 2, d: [1, 2]}\ne: x\n", "# c\nb: {d: [1, 3], c: 2, f: {g: h}}\na: 1\n");
  EXPECT_EQ(changes, (std::vector<SpecChange>{{"b.d", "[1, 2]", "[1, 3]"}, {"b.f", "", "{g: h}"}, {"e", "x", ""}}));
  EXPECT_EQ(changes_text(changes), "b.d: [1, 2], now [1, 3]; b.f: new, {g: h}; e: x, now left out");
}

TEST(SpecDiff, SeesNoDifferenceInOrderCommentsAndQuotes) {
  EXPECT_TRUE(spec_changes("a: b\nc: d\n", "c: \"d\" # x\na: b\n").empty());
}

TEST(SpecDiff, ShowsThreeAndCountsTheRest) {
  const std::string shown =
      changes_text(spec_changes("{a: 1, b: 1, c: 1, d: 1, e: 1}", "{a: 2, b: 2, c: 2, d: 2, e: 2}"));
  EXPECT_EQ(shown, "a: 1, now 2; b: 1, now 2; c: 1, now 2; and 2 more");
}

TEST(SpecDiff, LetsNothingReachTheTerminal) {
  const std::string shown = changes_text(spec_changes("a: 1", "a: \"" + std::string(500, 'x') + "\\x1b[m\""));
  EXPECT_LT(shown.size(), 200U);
  EXPECT_EQ(changes_text(spec_changes("a: 1", "a: \"\\x1b[m\"")).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace monarch
