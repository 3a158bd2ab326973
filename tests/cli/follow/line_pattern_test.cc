#include "cli/follow/line_pattern.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "transport/base/clock.h"

namespace monarch {

namespace {

bool matches(std::string_view pattern, std::string_view line) {
  const auto parsed = LinePattern::parse(pattern);
  EXPECT_TRUE(parsed.ok()) << pattern << ": " << (parsed.ok() ? "" : parsed.error().message);
  return parsed.ok() && parsed->matches(line);
}

std::string complaint(std::string_view pattern) {
  const auto parsed = LinePattern::parse(pattern);
  return parsed.ok() ? "" : parsed.error().message;
}

}  // namespace

TEST(LinePattern, FindsAnywhereUnlessAnchored) {
  EXPECT_TRUE(matches("loss", "step 3 loss 2.31"));
  EXPECT_FALSE(matches("^loss", "step 3 loss 2.31"));
  EXPECT_TRUE(matches("^step .* 2\\.3[0-9]$", "step 3 loss 2.31"));
  EXPECT_TRUE(matches("2.31$", "step 3 loss 2.31\r"));
  EXPECT_TRUE(matches("^$", ""));
  EXPECT_FALSE(matches("^$", "x"));
  EXPECT_TRUE(matches("$", "x"));
}

TEST(LinePattern, KnowsClassesCountsAndCases) {
  EXPECT_TRUE(matches("rank \\d{2,3}:", "rank 12:"));
  EXPECT_FALSE(matches("rank \\d{2,3}:", "rank 1:"));
  EXPECT_TRUE(matches("[[:digit:]]+\\s\\w", "7 x"));
  EXPECT_TRUE(matches("(?i)nan|inf", "loss NaN"));
  EXPECT_TRUE(matches("a{,b", "a{,b"));
  EXPECT_TRUE(matches("(?:error|warn)ing", "warning"));
}

TEST(LinePattern, ReadsLinesAsUtf8) {
  EXPECT_TRUE(matches("[^a]x", "€x"));
  EXPECT_TRUE(matches("^.$", "€"));
  EXPECT_FALSE(matches("^..$", "€"));
  EXPECT_FALSE(matches("a.z", "a\xffz"));
  EXPECT_TRUE(matches("z$", "a\xffz")) << "what is no UTF-8 hides nothing around it";
}

TEST(LinePattern, IsTheSameInEveryCopy) {
  std::optional<LinePattern> copy;
  {
    const auto parsed = LinePattern::parse("loss");
    ASSERT_TRUE(parsed.ok());
    copy = *parsed;
  }
  EXPECT_TRUE(copy->matches("loss 2.31"));
  EXPECT_FALSE(copy->matches("gain"));
}

TEST(LinePattern, NamesThePlaceOfAMistake) {
  EXPECT_EQ(complaint("a(b"), "`a(b`, column 2: a ( is never closed; \\( stands for one");
  EXPECT_EQ(complaint("(a)[(](b"), "`(a)[(](b`, column 7: a ( is never closed; \\( stands for one");
  EXPECT_EQ(complaint("((a"), "`((a`: a ( is never closed; \\( stands for one");
  EXPECT_EQ(complaint("ab)"), "`ab)`, column 3: a ) closes nothing; \\) stands for one");
  EXPECT_EQ(complaint("x[a-"), "`x[a-`, column 2: missing ]: [a-");
  EXPECT_EQ(complaint("*a"), "`*a`, column 1: no argument for repetition operator: *");
  EXPECT_EQ(complaint("a*|*b"), "`a*|*b`: no argument for repetition operator: *") << "it may be either";
  EXPECT_EQ(complaint("(a)\\1"), "`(a)\\1`, column 4: invalid escape sequence: \\1");
  EXPECT_EQ(complaint("a(?=b)"), "`a(?=b)`, column 2: invalid perl operator: (?=");
  EXPECT_EQ(complaint("a{3,2}"), "`a{3,2}`, column 2: invalid repetition size: {3,2}");
  EXPECT_EQ(complaint("[z-a]"), "`[z-a]`, column 2: invalid character class range: z-a");
  EXPECT_EQ(complaint("a\\"), "`a\\`, column 2: trailing \\");
  EXPECT_EQ(complaint("a\xff"), "`a\\xff`: invalid UTF-8");
  EXPECT_NE(complaint(""), "");
  EXPECT_NE(complaint(std::string(LinePattern::kLongestPattern + 1, 'a')), "");
}

TEST(LinePattern, RefusesWhatWouldBeHuge) {
  EXPECT_NE(complaint("((a{1000}){1000}){1000}").find("invalid repetition size"), std::string::npos);
  EXPECT_NE(complaint("(((){1000}){1000}){1000}").find("invalid repetition size"), std::string::npos);
  EXPECT_NE(complaint("a{1001}").find("invalid repetition size"), std::string::npos);
  EXPECT_NE(complaint("(\\pL{1000})").find("too large"), std::string::npos);
}

// A matcher that backtracks needs 2^30 steps and more for each of these.
TEST(LinePattern, TakesNoTimeThatGrowsWithItsChoices) {
  const std::string line(64U << 10U, 'a');
  const Instant begun = boot_now();
  for (const char* pattern :
       {"^(a+)+$b", "(a|a)*b", "(a*)*b", "(a?){500}a{500}b", "(.*)(.*)(.*)(.*)x", "[ab]*a[ab]{12}c"}) {
    EXPECT_FALSE(matches(pattern, line)) << pattern;
  }
  EXPECT_LT(boot_now() - begun, Duration::seconds(60));
}

TEST(LinePattern, TakesWhatItsFirstGroupSays) {
  const auto taken = [](std::string_view pattern, std::string_view line) {
    return LinePattern::parse(pattern)->first_group(line);
  };
  EXPECT_EQ(taken("with loss ([0-9.]+)", "done with loss 0.25 at last\r"), "0.25");
  EXPECT_EQ(taken("(?:a|b)=(.)", "b=7"), "7");
  EXPECT_EQ(taken("(a)?b", "b"), "") << "one that takes nothing";
  EXPECT_EQ(taken("with loss ([0-9.]+)", "done"), std::nullopt);
  EXPECT_EQ(taken("done", "done"), std::nullopt) << "it has no group";
  EXPECT_EQ(LinePattern::parse("(a)(b)(?:c)")->groups(), 2U);
}

}  // namespace monarch
