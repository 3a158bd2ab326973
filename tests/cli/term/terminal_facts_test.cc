#include "cli/term/terminal_facts.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "cli/term/terminal.h"
#include "transport/base/unique_fd.h"

namespace monarch {

TEST(TerminalFacts, ReadBackAsTheyWereWritten) {
  for (const char* written : {"other other", "terminal:120 other", "file terminal:0", "terminal:80 terminal:100 3"}) {
    const auto facts = parse_terminal_facts(written);
    ASSERT_TRUE(facts) << written;
    EXPECT_EQ(to_text(*facts), written);
  }
}

TEST(TerminalFacts, AreNoneWhereAnythingElseIsWritten) {
  for (const char* written :
       {"", "terminal", "terminal: other", "terminal:-1 other", "terminal:99999 other", "pipe other", "other other x",
        "other other -1", "other other 3 4", "other  other", "other"}) {
    EXPECT_FALSE(parse_terminal_facts(written)) << written;
  }
}

TEST(TerminalFacts, DecideWhatAViewerTakesItsPipesFor) {
  const Environment env({{kTerminalVariable, "terminal:132 terminal:100"}, {"TERM", "xterm"}});
  Terminal terminal = Terminal::of_this_process(env);
  terminal.decide_colours(ColourWhen::kAuto, env);
  EXPECT_TRUE(terminal.out_is_terminal);
  EXPECT_TRUE(terminal.out_colour);
  EXPECT_TRUE(terminal.err_live);
  EXPECT_EQ(terminal.out_columns, 132U);
  EXPECT_EQ(terminal.columns(), 100U);
}

TEST(TerminalFacts, AWindowThatChangedIsReadAnew) {
  const UniqueFd widths(::memfd_create("widths", MFD_CLOEXEC));
  ASSERT_TRUE(widths.valid());
  Terminal terminal{.err_columns = 100, .widths = widths.get()};
  EXPECT_EQ(terminal.columns(), 100U);
  write_terminal_widths(widths.get(), {.out = 90, .err = 72});
  EXPECT_EQ(terminal.columns(), 72U);
  EXPECT_EQ(*read_terminal_widths(widths.get()), (TerminalWidths{.out = 90, .err = 72}));
}

}  // namespace monarch
