#include "cli/line_pattern.h"

#include <gtest/gtest.h>
#include <regex.h>

#include <random>
#include <string>

#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

bool matches(std::string_view pattern, std::string_view line) {
  auto parsed = LinePattern::parse(pattern);
  EXPECT_TRUE(parsed.ok()) << pattern << ": " << (parsed.ok() ? "" : parsed.error().message);
  return parsed.ok() && parsed->matches(line);
}

std::string complaint(std::string_view pattern) {
  const auto parsed = LinePattern::parse(pattern);
  return parsed.ok() ? "" : parsed.error().message;
}

// What the C library's matcher says, which backtracks on none of these.
bool matches_by_library(const std::string& pattern, const std::string& line) {
  regex_t compiled;
  EXPECT_EQ(::regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB), 0) << pattern;
  const bool matched = ::regexec(&compiled, line.c_str(), 0, nullptr, 0) == 0;
  ::regfree(&compiled);
  return matched;
}

std::string random_pattern(std::mt19937& random, int depth) {
  const auto pick = [&](std::uint32_t count) { return random() % count; };
  if (depth == 0) {
    static const std::array kAtoms = {"a", "b", "c", ".", "[ab]", "[^a]", "[a-b]"};
    return kAtoms[pick(kAtoms.size())];
  }
  switch (pick(6)) {
    case 0: return random_pattern(random, depth - 1) + random_pattern(random, depth - 1);
    case 1: return text("(", random_pattern(random, depth - 1), "|", random_pattern(random, depth - 1), ")");
    case 2: return text("(", random_pattern(random, depth - 1), ")*");
    case 3: return text("(", random_pattern(random, depth - 1), ")+");
    case 4: return text("(", random_pattern(random, depth - 1), "){1,2}");
    default: return text("(", random_pattern(random, depth - 1), ")?", random_pattern(random, depth - 1));
  }
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
  EXPECT_TRUE(matches("[^a]x", "€x"));
  EXPECT_TRUE(matches("^.$", "€"));
  EXPECT_FALSE(matches("^..$", "€"));
  EXPECT_TRUE(matches("a{,b", "a{,b"));
  EXPECT_TRUE(matches("(?:error|warn)ing", "warning"));
}

TEST(LinePattern, AgreesWithTheLibrary) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE(text("seed ", seed));
  std::mt19937 random(seed);
  for (int run = 0; run < 500; ++run) {
    std::string pattern = random_pattern(random, 3);
    if (random() % 3 == 0) pattern = text("^(", pattern, ")$");
    auto ours = LinePattern::parse(pattern);
    ASSERT_TRUE(ours.ok()) << pattern;
    for (int line = 0; line < 20; ++line) {
      std::string words;
      for (auto size = random() % 6; size > 0; --size) words.push_back(static_cast<char>('a' + random() % 4));
      ASSERT_EQ(ours->matches(words), matches_by_library(pattern, words)) << pattern << " on " << words;
    }
  }
}

TEST(LinePattern, NamesThePlaceOfAMistake) {
  EXPECT_EQ(complaint("a(b"), "`a(b`, column 2: this ( is never closed; \\( stands for one");
  EXPECT_EQ(complaint("ab)"), "`ab)`, column 3: this ) closes nothing; \\) stands for one");
  EXPECT_EQ(complaint("x[a-"), "`x[a-`, column 2: this [ is never closed; \\[ stands for one");
  EXPECT_EQ(complaint("*a"), "`*a`, column 1: nothing stands before this * to repeat");
  EXPECT_EQ(complaint("(a)\\1"), "`(a)\\1`, column 4: there are no back-references");
  EXPECT_EQ(complaint("a{3,2}"), "`a{3,2}`, column 2: the second number is smaller than the first");
  EXPECT_EQ(complaint("[z-a]"), "`[z-a]`, column 2: this range ends before it begins");
  EXPECT_EQ(complaint("a\\"), "`a\\`, column 2: a \\ at the end; \\\\ stands for one");
  EXPECT_NE(complaint(""), "");
  EXPECT_NE(complaint(std::string(LinePattern::kLongestPattern + 1, 'a')), "");
}

TEST(LinePattern, RefusesWhatWouldBeHuge) {
  EXPECT_NE(complaint("((a{1000}){1000}){1000}").find("too large"), std::string::npos);
  EXPECT_NE(complaint("(((){1000}){1000}){1000}").find("too large"), std::string::npos);
  EXPECT_NE(complaint("a{1001}").find("at most 1000"), std::string::npos);
  EXPECT_NE(complaint(std::string(500, '(')).find("deep"), std::string::npos);
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

}  // namespace monarch
