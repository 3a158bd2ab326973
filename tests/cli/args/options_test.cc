#include "cli/args/options.h"

#include <gtest/gtest.h>

namespace monarch {

namespace {

std::vector<Command> commands() {
  return {
      {.name = "run",
       .summary = "run it",
       .description = "",
       .flags = {{.name = "timeout", .value = "DURATION", .help = "h"},
                 {.name = "no-prefix", .value = "", .help = "h"}},
       .positionals = {{.name = "SPEC", .help = "a file", .required = true}},
       .run = {}},
      {.name = "plan",
       .summary = "plan it",
       .description = "",
       .flags = {{.name = "file", .value = "FILE", .help = "h", .letter = 'f', .repeatable = true},
                 {.name = "size", .value = "N", .help = "h", .letter = 'n'}},
       .positionals = {{.name = "SPEC", .help = "a file", .required = true, .unless = {"file", "size"}}},
       .run = {},
       .program = "ARGS"},
      {.name = "logs",
       .summary = "show logs",
       .description = "",
       .flags = {{.name = "follow", .value = "", .help = "h", .letter = 'f'},
                 {.name = "rank", .value = "RANKS", .help = "h"}},
       .positionals = {{.name = "JOB", .help = "which"}},
       .run = {}},
      {.name = "secret", .summary = "s", .description = "", .flags = {}, .positionals = {}, .run = {}, .hidden = true}};
}

struct Line {
  std::vector<Command> all = commands();
  ParsedLine parsed;
  explicit Line(const std::vector<std::string>& words, std::map<std::string, std::string, std::less<>> env = {})
      : parsed(parse_command_line(all, words, Environment(std::move(env)))) {}
  const Arguments& arguments() const { return std::get<Invocation>(parsed).arguments; }
  std::string complaint() const {
    const auto* complaint = std::get_if<Complaint>(&parsed);
    return complaint == nullptr ? "" : complaint->id + ": " + complaint->message + " / " + complaint->help;
  }
};

}  // namespace

TEST(Options, TakesFlagsBeforeAndAfterArguments) {
  for (const auto& words : {std::vector<std::string>{"run", "a.yaml", "--timeout", "5m", "--no-prefix"},
                            {"run", "--timeout=5m", "--no-prefix", "a.yaml"},
                            {"run", "--timeout", "5m", "a.yaml", "--no-prefix"}}) {
    const Line line(words);
    ASSERT_EQ(line.complaint(), "");
    EXPECT_EQ(line.arguments().positional(0), "a.yaml");
    EXPECT_EQ(line.arguments().value("timeout"), "5m");
    EXPECT_TRUE(line.arguments().has("no-prefix"));
  }
}

TEST(Options, TakesLettersTogether) {
  const Line line({"logs", "-fq", "hello"});
  ASSERT_EQ(line.complaint(), "");
  EXPECT_TRUE(line.arguments().has("follow"));
  EXPECT_TRUE(line.arguments().has("quiet"));
}

TEST(Options, RefusesAFlagThatIsGivenTwice) {
  EXPECT_EQ(Line({"run", "a.yaml", "--timeout", "5m", "--timeout=6m"}).complaint(),
            "E0903: `--timeout` is given 2 times / usage: monarch run SPEC [flags]");
}

TEST(Options, TakesARepeatableFlagInTheOrderOfWriting) {
  const Line line({"plan", "-f", "a", "s.yaml", "--file=b", "-fc"});
  ASSERT_EQ(line.complaint(), "");
  EXPECT_EQ(line.arguments().values("file"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(line.arguments().positionals(), std::vector<std::string>{"s.yaml"});
  EXPECT_FALSE(line.arguments().from_variable("file"));
}

TEST(Options, ARepeatableFlagsVariableHasOneValuePerLine) {
  const std::map<std::string, std::string, std::less<>> env = {{"MONARCH_OPT_FILE", "a b\n\nc\n"}};
  const Line line({"plan"}, env);
  EXPECT_EQ(line.arguments().values("file"), (std::vector<std::string>{"a b", "c"}));
  EXPECT_TRUE(line.arguments().from_variable("file"));
  EXPECT_EQ(Line({"plan", "-f", "d"}, env).arguments().values("file"), std::vector<std::string>{"d"})
      << "a flag overrides all values of its variable";
  EXPECT_EQ(Line({"plan"}, {{"MONARCH_OPT_FILE", "\n"}}).complaint(),
            "E0903: `monarch plan` needs SPEC: a file / usage: monarch plan [SPEC] [flags] [-- ARGS]");
}

TEST(Options, HandsOverWhatFollowsTheDashes) {
  const Line line({"plan", "-n", "2", "--", "prog", "-n", "--", "--help"});
  ASSERT_EQ(line.complaint(), "");
  EXPECT_EQ(line.arguments().program(), (std::vector<std::string>{"prog", "-n", "--", "--help"}));
  EXPECT_EQ(line.arguments().positionals(), std::vector<std::string>{});
  EXPECT_EQ(Line({"plan", "-n", "2", "--"}).arguments().program(), std::vector<std::string>{});
  EXPECT_EQ(Line({"plan", "-n", "2"}).arguments().program(), std::nullopt);
  EXPECT_NE(Line({"run", "a", "--", "x"}).complaint(), "") << "a command that takes no program";
}

TEST(Options, TakesNoAbbreviations) {
  EXPECT_EQ(Line({"run", "a.yaml", "--time", "5m"}).complaint(),
            "E0902: unknown flag `--time` of `monarch run` / did you mean `--timeout`?");
  EXPECT_EQ(Line({"lo"}).complaint(), "E0901: unknown command `lo` / did you mean `monarch logs`?");
}

TEST(Options, AFlagOverridesItsVariable) {
  const std::map<std::string, std::string, std::less<>> env = {{"MONARCH_OPT_TIMEOUT", "1h"},
                                                               {"MONARCH_OPT_NO_PREFIX", "true"}};
  EXPECT_EQ(Line({"run", "a.yaml"}, env).arguments().value("timeout"), "1h");
  EXPECT_TRUE(Line({"run", "a.yaml"}, env).arguments().has("no-prefix"));
  EXPECT_EQ(Line({"run", "a.yaml", "--timeout", "5m"}, env).arguments().value("timeout"), "5m");
  EXPECT_EQ(Line({"logs"}, env).complaint(), "") << "a variable of another command's flag is no error";
  EXPECT_FALSE(Line({"run", "a.yaml"}, {{"MONARCH_OPT_NO_PREFIX", "false"}}).arguments().has("no-prefix"));
}

TEST(Options, RefusesVariablesThatNobodyKnows) {
  EXPECT_EQ(Line({"logs"}, {{"MONARCH_OPT_TIMEOT", "1h"}}).complaint(),
            "E0905: the environment variable MONARCH_OPT_TIMEOT is not a flag of any command / did you mean "
            "MONARCH_OPT_TIMEOUT?");
  EXPECT_EQ(Line({"run", "a"}, {{"MONARCH_OPT_NO_PREFIX", "yes"}}).complaint(),
            "E0905: MONARCH_OPT_NO_PREFIX=yes: neither true nor false / set it to true or false, or unset it");
}

TEST(Options, HelpWinsOverWhatIsMissing) {
  EXPECT_EQ(std::get<HelpWanted>(Line({"run", "--help"}).parsed).command->name, "run");
  EXPECT_EQ(std::get<HelpWanted>(Line({"help", "logs"}).parsed).command->name, "logs");
  EXPECT_EQ(std::get<HelpWanted>(Line({"--help"}).parsed).command, nullptr);
}

TEST(Options, NamesNoHiddenCommand) {
  EXPECT_EQ(help_text(commands()).find("secret"), std::string::npos);
  EXPECT_EQ(Line({"secre"}).complaint(), "E0901: unknown command `secre` / one of: run plan logs");
  EXPECT_EQ(std::get<Invocation>(Line({"secret"}).parsed).command->name, "secret");
}

TEST(Options, KnowsASpecWhereACommandShouldStand) {
  EXPECT_EQ(Line({"mesh.yaml"}).complaint(),
            "E0901: unknown command `mesh.yaml` / `monarch run mesh.yaml` runs a spec");
}

TEST(Options, ASingleDashIsAnArgument) { EXPECT_EQ(Line({"run", "-"}).arguments().positional(0), "-"); }

TEST(Options, LetsNoEscapeThrough) {
  EXPECT_EQ(Line({"\x1b[2J"}).complaint(), "E0901: unknown command `\\x1b[2J` / one of: run plan logs");
}

}  // namespace monarch
