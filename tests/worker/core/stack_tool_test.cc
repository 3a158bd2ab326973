#include "worker/core/stack_tool.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace monarch {
namespace {

using Words = std::vector<std::string>;
using Tools = std::vector<StackTool>;

const StackTarget kPython{.pid = 12, .executable = "/opt/conda/bin/python3.11", .state = 'S'};
const StackTarget kNative{.pid = 12, .executable = "/srv/train", .state = 'S'};

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

TEST(StackTool, TriesPySpyFirstAtPythonProgramsAlone) {
  EXPECT_EQ(stack_tools_for(kPython), (Tools{StackTool::kPySpy, StackTool::kEuStack, StackTool::kGdb}));
  EXPECT_EQ(stack_tools_for(kNative), (Tools{StackTool::kEuStack, StackTool::kGdb}));
  EXPECT_FALSE(is_python("/srv/python/train"));
}

TEST(StackTool, TakesTheMainThreadUnlessAllAreAskedFor) {
  EXPECT_TRUE(has(stack_command(StackTool::kGdb, kNative, {}), "thread apply 1 backtrace 100"));
  EXPECT_TRUE(has(stack_command(StackTool::kGdb, kNative, {.all_threads = true}), "thread apply all backtrace 100"));
  EXPECT_TRUE(has(stack_command(StackTool::kEuStack, kNative, {}), "-1"));
  EXPECT_FALSE(has(stack_command(StackTool::kEuStack, kNative, {.all_threads = true}), "-1"));
}

TEST(StackTool, LoadsNothingThatLiesBesideTheProgramOrItsUser) {
  const Words gdb = stack_command(StackTool::kGdb, kNative, {});
  for (const char* word : {"-nx", "-nh", "-batch", "set auto-load no"}) EXPECT_TRUE(has(gdb, word)) << word;
  EXPECT_EQ(gdb.front(), "gdb");
}

TEST(StackTool, DoesNotPauseWhatIsStopped) {
  EXPECT_EQ(stack_command(StackTool::kPySpy, kPython, {}), (Words{"py-spy", "dump", "--pid", "12"}));
  StackTarget stopped = kPython;
  stopped.state = 'T';
  EXPECT_EQ(stack_command(StackTool::kPySpy, stopped, {.native = true}),
            (Words{"py-spy", "dump", "--native", "--nonblocking", "--pid", "12"}));
}

TEST(StackTool, GetsNoVariableButWhereProgramsAndHomeAre) {
  const Environment made = stack_environment({{"PATH", "/opt/bin::.:bin:/usr/bin"},
                                              {"HOME", "/home/u"},
                                              {"LD_PRELOAD", "/x.so"},
                                              {"DEBUGINFOD_URLS", "https://somewhere"},
                                              {"PYTHONPATH", "/x"}});
  EXPECT_EQ(made, (Environment{{"HOME", "/home/u"}, {"LC_ALL", "C"}, {"PATH", "/opt/bin:/usr/bin"}, {"TERM", "dumb"}}));
  EXPECT_EQ(stack_environment({}).at("PATH"), "/usr/local/bin:/usr/bin:/bin");
  EXPECT_EQ(stack_environment({{"PATH", "bin:."}}).at("PATH"), "/usr/bin:/bin");
}

TEST(StackTool, TakesWhatShowsAStackWhateverItsExitCode) {
  EXPECT_EQ(
      judge(StackTool::kEuStack, {.value = 1, .output = "TID 12:\n#0  0x01 pause\n", .error = "one frame failed"}).end,
      StacksEnd::kTaken);
  EXPECT_EQ(judge(StackTool::kPySpy, {.value = 0, .output = "Thread 12 (idle): \"MainThread\"\n    f (t.py:6)\n"}).end,
            StacksEnd::kTaken);
  EXPECT_EQ(judge(StackTool::kEuStack, {.value = 0, .output = "PID 12 - process\nTID 12:\n"}).end, StacksEnd::kFailed);
}

// As gdb 13.1, eu-stack 0.188 and py-spy 0.4.3 said it.
TEST(StackTool, KnowsARefusalFromAFailure) {
  const StackVerdict gdb = judge(StackTool::kGdb, {.value = 1,
                                                   .output = "",
                                                   .error = "warning: process 12 is already traced by process 77\n"
                                                            "ptrace: Operation not permitted.\nNo stack.\n"});
  EXPECT_EQ(gdb.end, StacksEnd::kRefused);
  EXPECT_EQ(gdb.detail, "warning: process 12 is already traced by process 77");
  const StackVerdict eu =
      judge(StackTool::kEuStack,
            {.value = 2, .output = "", .error = "eu-stack: dwfl_linux_proc_report pid 12: Permission denied\n"});
  EXPECT_EQ(eu.end, StacksEnd::kRefused);
  EXPECT_EQ(eu.detail, "eu-stack: dwfl_linux_proc_report pid 12: Permission denied");
  EXPECT_EQ(
      judge(StackTool::kPySpy,
            {.value = 1, .output = "", .error = "Permission Denied: Try running again with elevated permissions\n"})
          .end,
      StacksEnd::kRefused);
  const StackVerdict failed = judge(
      StackTool::kPySpy, {.value = 1,
                          .output = "",
                          .error = "Error: Failed to find python version from target process\n\nStack backtrace:\n"
                                   "   0: anyhow::error\n"});
  EXPECT_EQ(failed.end, StacksEnd::kFailed);
  EXPECT_EQ(failed.detail,
            "py-spy showed no stack and ended with 1: Error: Failed to find python version from target process");
  EXPECT_EQ(judge(StackTool::kGdb, {.signaled = true, .value = 11, .output = "", .error = ""}).detail,
            "gdb was ended by signal 11");
  EXPECT_EQ(
      judge(StackTool::kEuStack, {.value = 2, .output = "", .error = "dwfl_linux_proc_report pid 12: No such process"})
          .end,
      StacksEnd::kEnded);
}

TEST(StackTool, SaysPrintableWordsAlone) {
  const std::string bytes = "Error: \x1b[2J" + std::string(10'000, 'x');
  const StackVerdict verdict = judge(StackTool::kGdb, {.value = 1, .output = "", .error = bytes});
  EXPECT_EQ(verdict.detail.find('\x1b'), std::string::npos);
  EXPECT_LT(verdict.detail.size(), 1'000U);
}

}  // namespace
}  // namespace monarch
