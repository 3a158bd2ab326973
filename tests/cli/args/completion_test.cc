// What could stand at the cursor, from the tables of the commands.

#include "cli/args/completion.h"

#include <gtest/gtest.h>

namespace monarch {

namespace {

std::vector<Command> some_commands() {
  std::vector<Command> commands(4);
  commands[0].name = "run";
  commands[0].summary = "run a spec";
  commands[0].flags = {{.name = "mesh", .value = "MESH", .help = "of this mesh"},
                       {.name = "fold", .value = "auto|always", .help = "", .letter = 'f'},
                       {.name = "artifacts", .value = "DIR", .help = ""}};
  commands[0].positionals = {{.name = "SPEC", .help = "", .required = true}};
  commands[1].name = "signal";
  commands[1].flags = {{.name = "mesh", .value = "MESH", .help = ""}};
  commands[1].positionals = {{.name = "JOB", .help = ""}, {.name = "SIGNAL", .help = "", .required = true}};
  commands[2].name = "secret";
  commands[2].hidden = true;
  commands[3].name = "explain";
  commands[3].flags = {{.name = "set", .value = "PATH=VALUE", .help = "", .repeatable = true},
                       {.name = "exit-code", .value = "WHICH", .help = ""},
                       {.name = "launch", .value = "WHERE", .help = ""},
                       {.name = "fault", .value = "FAULT", .help = ""},
                       {.name = "drill", .value = "SCENARIO", .help = ""}};
  commands[3].positionals = {{.name = "KEY", .help = ""}, {.name = "SPEC", .help = ""}};
  return commands;
}

Completion ask(const std::vector<std::string>& words) {
  const Sources sources{.jobs = [] { return std::vector<Candidate>{{.word = "demo-0001", .about = "live"}}; },
                        .meshes =
                            [](const Positional& kind, const std::string& subject) {
                              return std::vector<std::string>{kind.name + "." + subject, "trainer"};
                            },
                        .hosts = [](const Positional&, const std::string&) { return std::vector<std::string>{}; },
                        .dimensions = [](const Positional&, const std::string&) { return std::vector<std::string>{}; }};
  return complete(some_commands(), words, sources);
}

std::string words_of(const std::vector<std::string>& words) {
  std::string all;
  for (const Candidate& candidate : ask(words).candidates) all += candidate.word + " ";
  return all;
}

}  // namespace

TEST(Completion, OffersCommandsThatAreShown) {
  EXPECT_EQ(words_of({""}), "run signal explain help ");
  EXPECT_EQ(words_of({}), "run signal explain help ");
  EXPECT_EQ(words_of({"s"}), "signal ");
  EXPECT_EQ(words_of({"help", "r"}), "run ");
  EXPECT_EQ(words_of({"nosuch", ""}), "");
}

TEST(Completion, OffersFlagsThatAreNotGivenYet) {
  EXPECT_EQ(words_of({"run", "--"}), "--mesh --fold --artifacts --color --quiet --help ");
  EXPECT_EQ(words_of({"run", "--mesh", "m", "-f", "auto", "-q", "--"}), "--artifacts --color --help ");
  EXPECT_EQ(words_of({"run", "--m"}), "--mesh ");
}

TEST(Completion, OffersValuesByTheirKind) {
  EXPECT_EQ(words_of({"run", "a.yaml", "--mesh", ""}), "SPEC.a.yaml trainer ");
  EXPECT_EQ(words_of({"run", "a.yaml", "--mesh", "tr"}), "trainer ");
  EXPECT_EQ(words_of({"run", "--fold", ""}), "auto always ");
  EXPECT_EQ(words_of({"run", "-f", "al"}), "always ");
  EXPECT_EQ(words_of({"run", "--color", "n"}), "never ");
  EXPECT_EQ(ask({"run", "--artifacts", ""}).files, Files::kFolders);
  EXPECT_EQ(ask({"run", ""}).files, Files::kAny);
  EXPECT_EQ(ask({"run", "--", "pyt"}).files, Files::kAny);
}

TEST(Completion, OffersTheKeysOfASpecLevelByLevel) {
  EXPECT_EQ(words_of({"explain", "superv"}), "supervisor supervision ");
  EXPECT_EQ(words_of({"explain", "supervision.le"}), "supervision.lease ");
  EXPECT_EQ(words_of({"explain", "meshes."}), "meshes.* ");
  EXPECT_EQ(words_of({"explain", "meshes.trainer.resources.c"}), "meshes.trainer.resources.cpus ");
  EXPECT_EQ(words_of({"explain", "nosuch.x"}), "");
  EXPECT_EQ(words_of({"explain", "drill"}), "drills drill ");
  EXPECT_EQ(words_of({"explain", "drill.faults.f"}), "drill.faults.fault drill.faults.for ");
  EXPECT_EQ(words_of({"explain", "drill.nosuch."}), "");
  EXPECT_EQ(words_of({"explain", "--fault", "supervisor-"}), "supervisor-kill supervisor-hang ");
  EXPECT_EQ(ask({"explain", "--drill", ""}).files, Files::kAny);
  EXPECT_EQ(words_of({"explain", "E010"}).substr(0, 6), "E0101 ");
  EXPECT_EQ(words_of({"explain", "--set", "superv"}), "supervisor. supervision. ");
  EXPECT_EQ(words_of({"explain", "--set", "time"}), "time_limit= ");
  EXPECT_EQ(words_of({"explain", "--set", "meshes."}), "") << "names of one's own";
  EXPECT_EQ(words_of({"explain", "--set=meshes.m.env_p"}), "--set=meshes.m.env_pass= ");
  EXPECT_EQ(words_of({"explain", "--exit-code", ""}), "rank class ");
  EXPECT_EQ(words_of({"explain", "--launch", ""}), "local ");
}

TEST(Completion, TakesAValueBehindAnEqualsSignAsEachShellWritesIt) {
  EXPECT_EQ(words_of({"run", "--fold=a"}), "--fold=auto --fold=always ");
  EXPECT_EQ(words_of({"run", "--fold", "=", "al"}), "always ");
  EXPECT_EQ(words_of({"run", "--fold", "="}), "auto always ");
  EXPECT_EQ(words_of({"run", "--fold", "=", "auto", "--m"}), "--mesh ");
}

TEST(Completion, OffersWhatMayFollowAnOptionalArgument) {
  EXPECT_EQ(words_of({"signal", "d"}), "demo-0001 ");
  EXPECT_EQ(words_of({"signal", "USR"}), "USR1 USR2 ");
  EXPECT_EQ(words_of({"signal", "demo-0001", "USR1", ""}), "");
  EXPECT_EQ(words_of({"signal", "demo-0001", "WINC"}), "WINCH ");
  EXPECT_EQ(words_of({"signal", "demo-0001", "--mesh", "J"}), "JOB.demo-0001 ");
}

TEST(Completion, WritesOneCandidatePerLineAndWhatToDoWithFiles) {
  EXPECT_EQ(
      completion_lines({.candidates = {{.word = "a", .about = "first"}, {.word = "b\x1b"}}, .files = Files::kAny}),
      "a\tfirst\nb\\x1b\n:files\n");
  for (const std::string& shell : completion_shells()) EXPECT_FALSE(completion_script(shell).empty());
  EXPECT_TRUE(completion_script("csh").empty());
}

}  // namespace monarch
