// Files made to cost time or memory are refused while they are small. The bound is on memory, in a process of its own:
// its peak is what counts.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/supervisor/spec/spec_text.h"
#include "transport/base/limits.h"
#include "transport/base/sanitizers.h"

namespace monarch {
namespace {

std::string repeated(std::string_view head, std::string_view part) {
  std::string out(head);
  while (out.size() + part.size() <= limits::kSpecBytes) out += part;
  return out;
}

struct Bomb {
  const char* name;
  std::string source;
};

std::vector<Bomb> bombs() {
  std::string staircase;
  for (std::size_t i = 0; i < 1400; ++i) staircase += std::string(i, ' ') + "a:\n";
  std::string names;
  for (int i = 0; names.size() < limits::kSpecBytes - 20; ++i) names += text("Key", i, ": 1\n");
  return {{"brackets in one line", repeated("", "[")},
          {"braces in one line", repeated("", "{")},
          {"brackets, one a line", repeated("", "[\n")},
          {"brackets and braces", repeated("", "{a: [")},
          {"dashes", repeated("", "- ")},
          {"question marks", repeated("", "? ")},
          {"colons", repeated("", ": ")},
          {"a staircase", staircase},
          {"a flat list", repeated("a: [", "a,")},
          {"a flat list in lines", repeated("a:\n", "- a\n")},
          {"a flat list inside a map", repeated("x: {a: [\n", " a,\n")},
          {"empty maps in a list", repeated("[\n", "{},")},
          {"commas", repeated("a: [", ",")},
          {"keys", names},
          {"one key", repeated("", "k: 1\n")},
          {"aliases", repeated("[", "*a,")},
          {"anchors", repeated("", "&a ")},
          {"tags", repeated("", "!a ")},
          {"one text", repeated("", "a")},
          {"one quoted text", repeated("\"", "\\n")},
          {"a folded text", repeated("a: b\n", "  c\n")},
          {"comments", repeated("a: 1\n", "# x\n")},
          {"documents", repeated("", "---\n")},
          {"a name of hosts", "version: 1\nlaunch: {ssh: {hosts: \"" + std::string(240, 'a') + "[1-99999]\"}}\n"},
          {"hosts in brackets", "version: 1\nlaunch: {ssh: {hosts: \"a[1-9999][1-9999][1-9999]\"}}\n"}};
}

TEST(Bombs, AreRefusedWithinSixtyFourMebibytes) {
  for (const Bomb& bomb : bombs()) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      rusage before{};                          // what the tests before this one have left it
      (void)::getrusage(RUSAGE_SELF, &before);  // cannot fail for RUSAGE_SELF
      const SpecOutcome outcome = load_text(bomb.source);
      const std::string shown = render(outcome.diagnostics, bomb.source);
      rusage usage{};
      (void)::getrusage(RUSAGE_SELF, &usage);
      const bool small = kSanitized || usage.ru_maxrss - before.ru_maxrss < 64L * 1024;
      ::_exit((outcome.loaded ? 1 : 0) | (outcome.diagnostics.empty() ? 2 : 0) | (small ? 0 : 4) |
              (shown.size() < 100'000 ? 0 : 8));
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << bomb.name << ": loaded 1, no error 2, too much memory 4, too much output 8";
  }
}

TEST(Bombs, AreRefusedByNameOfTheLimit) {
  const auto first_id = [](const std::string& source) { return ids(load_text(source)).at(0); };
  EXPECT_EQ(first_id(std::string(limits::kSpecBytes + 1, 'a')), "E0002");
  EXPECT_EQ(first_id(repeated("", "- ")), "E0003");
  EXPECT_EQ(first_id(repeated("a:\n", "- a\n")), "E0012");
  EXPECT_EQ(first_id(repeated("x: 1\n", "# a comment\n")), "E0014");
  EXPECT_EQ(first_id(repeated("[", "*a,")), "E0014");
}

}  // namespace
}  // namespace monarch
