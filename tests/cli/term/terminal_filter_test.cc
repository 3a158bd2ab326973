#include "cli/term/terminal_filter.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

std::string passed(std::string_view bytes) { return TerminalFilter().pass(bytes); }

TEST(TerminalFilter, LetsThroughAllThatAViewerWrites) {
  for (const std::string_view words :
       {"[m/0@h1] step 12\n", "\tgrün, 日本, €\n", "\r\x1b[K3 of 4 hosts", "\x1b[31mred\x1b[0m",
        "\x1b[1;31;48;5;22mall\x1b[m", "\r\x1b[2A\x1b[J", "\x1b[0Ksection_start:1:x\r\x1b[0Ky\n"}) {
    EXPECT_EQ(passed(words), words);
  }
}

TEST(TerminalFilter, ShowsWhatWouldSteerTheTerminalAsText) {
  EXPECT_EQ(passed("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(passed("\x1b[6n"), "\\x1b[6n") << "the terminal would answer";
  EXPECT_EQ(passed("\x1b[10;10H"), "\\x1b[10;10H");
  EXPECT_EQ(passed("\x1b[?1049h"), "\\x1b[?1049h");
  EXPECT_EQ(passed("\x1bP1;1q\x1b\\"), "\\x1bP1;1q\\x1b\\");
  EXPECT_EQ(passed("\x1b"
                   "c"),
            "\\x1b"
            "c")
      << "a reset";
  EXPECT_EQ(passed("a\x08"
                   "b\x7f\x0e"),
            "a\\x08"
            "b\\x7f\\x0e");
  EXPECT_EQ(passed("\xc2\x9b"
                   "6n"),
            "\\xc2\\x9b"
            "6n")
      << "a sequence begins with this one as well";
  EXPECT_EQ(passed("\x1b\x1b[6n"), "\\x1b\\x1b[6n");
  EXPECT_EQ(passed("\x1b[11111111111111111m"), "\\x1b[11111111111111111m");
}

TEST(TerminalFilter, JudgesASequenceByAllItsPieces) {
  for (const std::string_view words : {"a\x1b[31mb\x1b[K", "a\x1b]0;t\x07",
                                       "\xc2\x9b"
                                       "6n",
                                       "x\x1b[6n\xc3\xbc"}) {
    TerminalFilter filter;
    std::string out;
    for (const char byte : words) out += filter.pass({&byte, 1});
    EXPECT_EQ(out, passed(words));
  }
}

TEST(TerminalFilter, KeepsNoMoreThanABeginning) {
  TerminalFilter filter;
  EXPECT_EQ(filter.pass("\x1b["), "");
  EXPECT_EQ(filter.pass(std::string(100'000, '1')).size(), 4U + 1 + 100'000);
}

}  // namespace
}  // namespace monarch
