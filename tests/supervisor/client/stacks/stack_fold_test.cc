#include "supervisor/client/stacks/stack_fold.h"

#include <gtest/gtest.h>

#include "tests/supervisor/client/stacks/recorded_stacks.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

ProcessStacks process(StackTool tool, std::string_view output, std::int32_t pid, std::string name = "train") {
  return {.pid = pid,
          .name = std::move(name),
          .state = "S",
          .tool = tool,
          .end = StacksEnd::kTaken,
          .output = std::string(output)};
}

RankStacks rank(std::uint32_t number, std::vector<ProcessStacks> processes) {
  RankStacks told{.rank = {MeshId(0), Rank(number)}, .generation = 1, .host = text("v", number / 4 + 1), .stacks = {}};
  told.stacks.processes = std::move(processes);
  return told;
}

RankStacks not_taken(std::uint32_t number, StacksEnd end, std::string detail = "") {
  RankStacks told = rank(number, {});
  told.stacks.end = end;
  told.stacks.detail = std::move(detail);
  return told;
}

std::string gdb(int pid, const std::string& frames) {
  return text("Thread 1 (Thread 0x7f", pid, " (LWP ", pid, ") \"train\"):\n", frames);
}

TEST(StackFold, ShowsSevenAndOne) {
  std::vector<RankStacks> all;
  for (int i = 0; i < 8; ++i) {
    const int pid = 100 + i;
    const std::string stuck =
        text("#0  0x", pid, " in lock (m=...) at lock.c:1\n#1  0x", pid, " in main () at train.cc:9\n");
    const std::string steps =
        text("#0  0x", pid, " in pause () from /lib/libc.so.6\n#1  main () at train.cc:", 10 + i, "\n");
    all.push_back(
        rank(static_cast<std::uint32_t>(i), {process(StackTool::kGdb, gdb(pid, i == 3 ? stuck : steps), pid)}));
  }
  const auto groups = fold_stacks(all, false);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].ranks, (std::vector<std::size_t>{0, 1, 2, 4, 5, 6, 7}));
  EXPECT_EQ(groups[1].ranks, (std::vector<std::size_t>{3}));
  const auto& frames = groups[0].processes.at(0).threads.at(0).frames;
  EXPECT_EQ(frames[0].function, "pause");
  EXPECT_EQ(frames[0].place, "libc.so.6");
  EXPECT_EQ(frames[1].first_line, 10U) << "lines differ, and are shown as what they span";
  EXPECT_EQ(frames[1].last_line, 17U);
}

TEST(StackFold, ComparesMainThreadsUnlessAllAreAskedFor) {
  const std::string other = "Thread 2 (LWP 9):\n#0  wait ()\n";
  const std::vector<RankStacks> all = {
      rank(0, {process(StackTool::kGdb, gdb(1, "#0  main ()\n") + other, 1)}),
      rank(1, {process(StackTool::kGdb, gdb(2, "#0  main ()\n"), 2)}),
  };
  EXPECT_EQ(fold_stacks(all, false).size(), 1U);
  EXPECT_EQ(fold_stacks(all, true).size(), 2U);
}

TEST(StackFold, CountsThreadsOfAProcessThatStandAlike) {
  const auto with = [](int pid, int workers) {
    std::string output = gdb(pid, "#0  main ()\n");
    for (int i = 0; i < workers; ++i)
      output += text("Thread ", i + 2, " (LWP ", pid + i + 1, "):\n#0  wait () at p.c:", i + 1, "\n");
    return process(StackTool::kGdb, output, pid);
  };
  const auto groups = fold_stacks({rank(0, {with(100, 3)}), rank(1, {with(200, 5)})}, true);
  ASSERT_EQ(groups.size(), 1U) << "how many there are makes no difference";
  const auto& threads = groups[0].processes.at(0).threads;
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_TRUE(threads[0].main);
  EXPECT_EQ(threads[1].fewest, 3U);
  EXPECT_EQ(threads[1].most, 5U);
  EXPECT_EQ(threads[1].frames.at(0).last_line, 5U);
}

TEST(StackFold, TellsProgramsAndToolsApart) {
  const auto one = [](std::string name) {
    return process(StackTool::kGdb, gdb(1, "#0  main ()\n"), 1, std::move(name));
  };
  EXPECT_EQ(fold_stacks({rank(0, {one("a")}), rank(1, {one("b")})}, false).size(), 2U);
  EXPECT_EQ(fold_stacks({rank(0, {one("a")}), rank(1, {one("a"), one("a")})}, false).size(), 2U);
}

TEST(StackFold, LeavesOutWhatWasNotTakenAndSaysWhy) {
  const RankStacks none = rank(1, {{.pid = 7, .name = "train", .state = "S", .end = StacksEnd::kNoTool}});
  const auto groups = fold_stacks({not_taken(0, StacksEnd::kEnded), none}, false);
  EXPECT_TRUE(groups.empty());
  EXPECT_EQ(why_not(not_taken(0, StacksEnd::kEnded)), "it had ended when it was to be looked at");
  EXPECT_EQ(why_not(none),
            "no debugger is in the PATH of the worker on v1: install elfutils (eu-stack) or gdb there, and for Python "
            "programs "
            "py-spy");
  EXPECT_EQ(why_not(not_taken(4, StacksEnd::kUnreachable, "the host is not connected")),
            "v2 said nothing: the host is not connected");
}

TEST(StackFold, SaysWhatHelpsAgainstARefusal) {
  const auto refused = [](std::string detail) {
    return why_not(rank(0, {{.pid = 7,
                             .name = "t",
                             .state = "S",
                             .tool = StackTool::kGdb,
                             .end = StacksEnd::kRefused,
                             .detail = std::move(detail)}}));
  };
  EXPECT_EQ(refused("ptrace: Operation not permitted.; kernel.yama.ptrace_scope is 2"),
            "the kernel does not let gdb look at it: ptrace: Operation not permitted.; kernel.yama.ptrace_scope is 2; "
            "as root, "
            "there: sysctl kernel.yama.ptrace_scope=1");
  EXPECT_NE(refused("Operation not permitted").find("CAP_SYS_PTRACE"), std::string::npos);
  EXPECT_NE(refused("x; kernel.yama.ptrace_scope is 1").find("not what it started"), std::string::npos);
  EXPECT_EQ(refused("process 7 is already traced by process 9"),
            "the kernel does not let gdb look at it: process 7 is already traced by process 9");
}

TEST(StackFold, KeepsWhatADebuggerShowedBeforeItWasKilled) {
  ProcessStacks half = process(StackTool::kGdb, gdb(7, "#0  main ()\n"), 7);
  half.end = StacksEnd::kTimedOut;
  half.detail = "gdb was not done within 2s and was killed";
  const auto groups = fold_stacks({rank(0, {half})}, false);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].processes.at(0).why_not, "gdb was not done within 2s and was killed (--timeout gives it longer)");
  EXPECT_EQ(groups[0].processes.at(0).threads.size(), 1U);
}

TEST(StackFold, PutsOneThatWasKilledAfterItShowedTheSameWithTheOthers) {
  const ProcessStacks whole = process(StackTool::kGdb, gdb(7, "#0  main ()\n"), 7);
  ProcessStacks late = whole;
  late.end = StacksEnd::kTimedOut;
  late.detail = "gdb was not done within 2s and was killed";
  for (const bool first : {true, false}) {
    const auto groups = fold_stacks({rank(0, {first ? late : whole}), rank(1, {first ? whole : late})}, false);
    ASSERT_EQ(groups.size(), 1U) << "the odd one out is no hang, but a slow debugger";
    EXPECT_EQ(groups[0].processes.at(0).why_not, "");
  }
  EXPECT_EQ(stack_words(rank(0, {late}), 1'000), "train (gdb): gdb was not done within 2s and was killed\n  main")
      << "in an event nobody has a flag to set";
}

TEST(StackFold, MakesWordsForAnEventThatArePrintableAndBounded) {
  const RankStacks python = rank(0, {process(StackTool::kPySpy, recorded::kPySpy, recorded::kPythonPid, "python3.11")});
  EXPECT_EQ(stack_words(python, 1'000), "python3.11 (py-spy)\n  Trainer.step (t.py:6)\n  <module> (t.py:9)");
  EXPECT_EQ(stack_words(python, 10), "python3.11");
  const RankStacks odd = rank(0, {process(StackTool::kGdb, "#0  \x1b[2Jf ()\n", 1)});
  EXPECT_EQ(stack_words(odd, 1'000).find('\x1b'), std::string::npos);
  EXPECT_EQ(stack_words(not_taken(0, StacksEnd::kNotExecuted), 1'000), "its program has not been executed yet");
  RankStacks foreign = not_taken(0, StacksEnd::kFailed);
  foreign.stacks.detail = "a\u00e4";
  EXPECT_EQ(stack_words(foreign, 3), "a\u00e4");
  EXPECT_EQ(stack_words(foreign, 2), "a") << "not half of a character";
}

}  // namespace
}  // namespace monarch
