#include "cli/import/shell_words.h"

#include <gtest/gtest.h>

#include "transport/base/text.h"

namespace monarch {
namespace {

// "a|b c|$d": the words, one that a shell would have expanded marked.
std::string shown(std::string_view line) {
  const auto words = split_shell_words(line);
  if (!words.ok()) return "refused: " + words.error().message;
  std::vector<std::string> out;
  for (const ShellWord& word : *words) out.push_back(text(word.expands ? "EXPANDS " : "", word.text));
  return join(out, "|");
}

TEST(ShellWords, SplitsAsAShellDoes) {
  EXPECT_EQ(shown("  torchrun  --nnodes 2\ttrain.py "), "torchrun|--nnodes|2|train.py");
  EXPECT_EQ(shown("a 'b c' \"d e\" f\\ g"), "a|b c|d e|f g");
  EXPECT_EQ(shown("a'b'\"c\"d"), "abcd");
  EXPECT_EQ(shown("a '' \"\" b"), "a|||b");
  EXPECT_EQ(shown("'a\\b' \"c\\d\" \"e\\\"f\" \"g\\\\h\" \"\\$i\" i\\'j"), "a\\b|c\\d|e\"f|g\\h|$i|i'j");
  EXPECT_EQ(shown("'a\nb' \"c\nd\""), "a\nb|c\nd");
  EXPECT_EQ(shown(""), "");
}

TEST(ShellWords, JoinsContinuedLinesAndLeavesCommentsOut) {
  EXPECT_EQ(shown("a \\\n  b\\\nc"), "a|bc");
  EXPECT_EQ(shown("\"a\\\nb\""), "ab");
  EXPECT_EQ(shown("\n # first\na b # rest | more\n  \n"), "a|b");
  EXPECT_EQ(shown("a#b"), "a#b");
}

TEST(ShellWords, MarksWhatAShellWouldExpand) {
  EXPECT_EQ(shown("$A x$B \"y $C\" ${D:-a b} $1 $@"),
            "EXPANDS $A|EXPANDS x$B|EXPANDS y $C|EXPANDS ${D:-a b}|EXPANDS $1|EXPANDS $@");
  EXPECT_EQ(shown("'$A' \\$B \"\\$C\" a$ \"5 $\" $,"), "$A|$B|$C|a$|5 $|$,");
}

TEST(ShellWords, RefusesWhatOnlyAShellCanDo) {
  for (const char* line : {"a | b", "a && b", "a; b", "a > f", "a < f", "(a)", "a & ", "a $(b)", "a \"$(b)\"", "a `b`",
                           "a \"`b`\"", "a ~/b", "~", "a\nb"}) {
    EXPECT_EQ(shown(line).find("refused: "), 0U) << line << " " << shown(line);
  }
  EXPECT_EQ(shown("a '|' \"*\" \\? b~ 'x;y'"), "a|||*|?|b~|x;y");
  EXPECT_EQ(shown("a | b"),
            "refused: `|` is for a shell; one command alone can be translated, and quotes keep it (character 3)");
}

TEST(ShellWords, MarksWhatMayStandForNamesOfFiles) {
  const auto words = split_shell_words("a *.py 'b?' node[01-02]? c").value();
  EXPECT_EQ(words[1], (ShellWord{.text = "*.py", .pattern = '*', .pattern_at = 3}));
  EXPECT_EQ(words[2], (ShellWord{.text = "b?"})) << "quoted";
  EXPECT_EQ(words[3], (ShellWord{.text = "node[01-02]?", .pattern = '[', .pattern_at = 17})) << "the first of them";
  EXPECT_EQ(words[4], (ShellWord{.text = "c"}));
}

TEST(ShellWords, NamesWhatIsNotClosed) {
  EXPECT_EQ(shown("a 'b"), "refused: a ' is not closed (character 3)");
  EXPECT_EQ(shown("a \"b"), "refused: a \" is not closed (character 3)");
  EXPECT_EQ(shown("a ${b"), "refused: a { is not closed (character 4)");
  EXPECT_EQ(shown("a \\"), "refused: nothing follows the \\ (character 3)");
}

TEST(ShellWords, KnowAssignments) {
  EXPECT_TRUE(is_assignment({.text = "A=b"}));
  EXPECT_TRUE(is_assignment({.text = "_A1="}));
  for (const char* word : {"A", "=b", "1A=b", "a-b=c", "--a=b"}) EXPECT_FALSE(is_assignment({.text = word})) << word;
}

}  // namespace
}  // namespace monarch
