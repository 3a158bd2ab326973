#include "supervisor/workers/verdict.h"

#include <gtest/gtest.h>

#include "tests/supervisor/client/scratch.h"

namespace monarch {

namespace {

FirstCause failed_rank() {
  FirstCause cause;
  cause.kind = CauseKind::kRank;
  cause.mesh = "trainers";
  cause.rank = 3;
  cause.generation = 2;
  cause.summary = "exit code 1";
  return cause;
}

std::string summary_with(const std::string& error_file) {
  const Scratch scratch;
  scratch.write("trainers/3.2.error.json", error_file);
  FirstCause cause = failed_rank();
  add_last_words(scratch.path(), {}, 0, cause);
  return cause.summary;
}

}  // namespace

TEST(Verdict, TellsTheFirstLineOfAnErrorFile) {
  EXPECT_EQ(summary_with(R"({"message": "ValueError: no loss\nand more"})"), "exit code 1: ValueError: no loss");
  EXPECT_EQ(summary_with(R"({"message": {"message": "ValueError: no loss", "extraInfo": {}}})"),
            "exit code 1: ValueError: no loss");
}

TEST(Verdict, TellsTheMessageOfAnErrorFileWithALongStack) {
  const std::string stack(200'000, 's');
  EXPECT_EQ(summary_with(R"({"message": {"message": "ValueError: no loss\n)" + stack +
                         R"(", "extraInfo": {"py_callstack": ")" + stack + R"("}}})"),
            "exit code 1: ValueError: no loss");
}

TEST(Verdict, CutsALongFirstLine) {
  EXPECT_EQ(summary_with(R"({"message": ")" + std::string(100'000, 'm') + R"("})"),
            "exit code 1: " + std::string(4'096, 'm'));
}

TEST(Verdict, SaysNothingOfAnErrorFileThatCannotBeRead) {
  EXPECT_EQ(summary_with(R"({"message": ")"), "exit code 1");
  EXPECT_EQ(summary_with(R"({"message": ")" + std::string(2'000'000, 'm') + R"("})"), "exit code 1");
}

TEST(Verdict, TellsWhatNoFileTook) {
  const Scratch scratch;
  scratch.write("trainers/3.2.err", "step 1\n");
  FirstCause cause = failed_rank();
  add_last_words(scratch.path(), {.at = 7, .bytes = "Traceback\nOSError: 28\n"}, 7, cause);
  EXPECT_EQ(cause.stderr_tail, "step 1\nTraceback\nOSError: 28\n");

  scratch.write("trainers/3.2.err", "step 1\nTraceback\nValueError\n");
  add_last_words(scratch.path(), {.at = 7, .bytes = "what was lost\n"}, 28, cause);
  EXPECT_EQ(cause.stderr_tail, "step 1\nwhat was lost\nTraceback\nValueError\n") << "the file went on behind it";
}

TEST(Verdict, KeepsTheLastTwentyLinesOfStderr) {
  const Scratch scratch;
  std::string all;
  for (int i = 1; i <= 30; ++i) all += "line " + std::to_string(i) + "\n";
  scratch.write("trainers/3.2.err", all);
  FirstCause cause = failed_rank();
  add_last_words(scratch.path(), {}, 0, cause);
  EXPECT_TRUE(cause.stderr_tail.starts_with("line 11\n")) << cause.stderr_tail;
  EXPECT_TRUE(cause.stderr_tail.ends_with("line 30\n"));
}

}  // namespace monarch
