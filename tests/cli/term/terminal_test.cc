#include "cli/term/terminal.h"

#include <gtest/gtest.h>

#include <set>

#include "cli/term/table.h"

namespace monarch {

namespace {

Environment env(std::map<std::string, std::string, std::less<>> variables) { return Environment(std::move(variables)); }

}  // namespace

TEST(Colour, AutoColoursATerminalAndNothingElse) {
  EXPECT_TRUE(use_colour(ColourWhen::kAuto, true, env({{"TERM", "xterm"}})));
  EXPECT_TRUE(use_colour(ColourWhen::kAuto, true, env({})));
  EXPECT_FALSE(use_colour(ColourWhen::kAuto, false, env({{"TERM", "xterm"}})));
  EXPECT_FALSE(use_colour(ColourWhen::kAuto, true, env({{"TERM", "dumb"}})));
}

TEST(Colour, NoColorCountsOnlyIfItIsNotEmpty) {
  EXPECT_FALSE(use_colour(ColourWhen::kAuto, true, env({{"NO_COLOR", "1"}})));
  EXPECT_TRUE(use_colour(ColourWhen::kAuto, true, env({{"NO_COLOR", ""}})));
  EXPECT_FALSE(use_colour(ColourWhen::kAuto, true, env({{"NO_COLOR", "1"}, {"FORCE_COLOR", "1"}})));
}

TEST(Colour, CanBeForcedWithoutATerminal) {
  EXPECT_TRUE(use_colour(ColourWhen::kAuto, false, env({{"FORCE_COLOR", "1"}})));
  EXPECT_TRUE(use_colour(ColourWhen::kAuto, false, env({{"CLICOLOR_FORCE", "1"}})));
  EXPECT_FALSE(use_colour(ColourWhen::kAuto, false, env({{"FORCE_COLOR", "0"}})));
}

TEST(Colour, TheFlagDecidesOverEverything) {
  EXPECT_TRUE(use_colour(ColourWhen::kAlways, false, env({{"NO_COLOR", "1"}, {"TERM", "dumb"}})));
  EXPECT_FALSE(use_colour(ColourWhen::kNever, true, env({{"FORCE_COLOR", "1"}})));
  EXPECT_EQ(*parse_colour_when("never"), ColourWhen::kNever);
  EXPECT_EQ(parse_colour_when("sometimes").error().code, ErrorCode::kInvalid);
}

TEST(Colour, AHostKeepsItsColourAndHostsDiffer) {
  EXPECT_EQ(host_colour("v1"), host_colour("v1"));
  std::set<Colour> seen;
  for (int i = 1; i <= 16; ++i) seen.insert(host_colour("v" + std::to_string(i)));
  EXPECT_GT(seen.size(), 2U);
  EXPECT_FALSE(seen.contains(Colour::kRed));
}

TEST(Paint, LeavesWordsAloneWhereColourIsOff) {
  EXPECT_EQ(paint(Colour::kRed, "x", false), "x");
  EXPECT_EQ(paint(Colour::kRed, "x", true), "\x1b[31mx\x1b[0m");
}

TEST(Table, AlignsItsColumnsByCharacters) {
  Table table({"NAME", "PHASE"});
  table.add({{.words = "größe"}, {.words = "ready"}});
  table.add({{.words = "b"}, {.words = ""}});
  EXPECT_EQ(table.render(false), "NAME   PHASE\ngröße  ready\nb      -\n");
}

TEST(Table, LetsNoEscapeThrough) {
  Table table({"NAME"});
  table.add({{.words = "\x1b[2J"}});
  EXPECT_EQ(table.render(false), "NAME\n\\x1b[2J\n");
}

}  // namespace monarch
