#include "cli/args/command_words.h"

#include <gtest/gtest.h>

#include "cli/args/options.h"

namespace monarch {

namespace {

std::vector<Command> commands() {
  return {{.name = "look",
           .summary = "look",
           .description = "",
           .flags = {{.name = "json", .value = "", .help = "a switch"},
                     {.name = "mesh", .value = "MESH", .help = "a value"},
                     {.name = "set", .value = "PATH=VALUE", .help = "several", .repeatable = true}},
           .positionals = {{.name = "JOB", .help = "which"}},
           .run = [](const Arguments&, Context&) { return 0; }}};
}

Arguments parse(const std::vector<std::string>& line, const Environment& env = {}) {
  const std::vector<Command> known = commands();
  const ParsedLine parsed = parse_command_line(known, line, env);
  EXPECT_TRUE(std::holds_alternative<Invocation>(parsed));
  return std::get<Invocation>(parsed).arguments;
}

using Words = std::vector<std::string>;

}  // namespace

TEST(CommandWords, SayTheSameAsWhatWasWritten) {
  const Words line = {"look", "--json", "--mesh=a b", "--set=x=1", "--set=--y", "--color=never", "hello-3fa2"};
  const Arguments arguments = parse(line);
  const Words words = command_words(commands().front(), arguments, arguments.positionals());
  EXPECT_EQ(words, line);
  const Arguments again = parse(words);
  EXPECT_EQ(again.values("set"), (Words{"x=1", "--y"}));
  EXPECT_EQ(again.value("mesh"), "a b");
}

TEST(CommandWords, HaveWhatThisShellsVariablesSay) {
  const Environment env({{"MONARCH_OPT_JSON", "true"}, {"MONARCH_OPT_MESH", "trainer"}, {"MONARCH_OPT_QUIET", "1"}});
  const Arguments arguments = parse({"look", "--mesh", "other"}, env);
  EXPECT_EQ(command_words(commands().front(), arguments, {"x-0001"}),
            (Words{"look", "--json", "--mesh=other", "--quiet", "x-0001"}));
}

TEST(CommandWords, LeaveOutWhatIsDoneHere) {
  const Arguments arguments = parse({"look", "--json", "--mesh", "m"});
  EXPECT_EQ(command_words(commands().front(), arguments, {}, {"mesh"}), (Words{"look", "--json"}));
}

}  // namespace monarch
