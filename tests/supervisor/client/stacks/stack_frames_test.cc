#include "supervisor/client/stacks/stack_frames.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/supervisor/client/stacks/recorded_stacks.h"

namespace monarch {
namespace {

using Frames = std::vector<StackFrame>;

TEST(StackFrames, OfGdbAreReadWithoutAddressesAndArguments) {
  const auto threads = read_stacks(StackTool::kGdb, recorded::kGdb, recorded::kStuckPid);
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_TRUE(threads[0].main);
  EXPECT_EQ(threads[0].id, recorded::kStuckPid);
  EXPECT_EQ(threads[0].name, "stuck");
  EXPECT_TRUE(threads[0].more);
  EXPECT_EQ(threads[0].frames, (Frames{{"futex_wait", "../sysdeps/nptl/futex-internal.h", 146},
                                       {"__GI___lll_lock_wait", "./nptl/lowlevellock.c", 49},
                                       {"lll_mutex_lock_optimized", "./nptl/pthread_mutex_lock.c", 48},
                                       {"___pthread_mutex_lock", "./nptl/pthread_mutex_lock.c", 93},
                                       {"Trainer<int>::step", "stuck.cc", 6},
                                       {"<signal handler called>", "", 0},
                                       {"main", "stuck.cc", 7}}));
  EXPECT_FALSE(threads[1].main);
  EXPECT_EQ(threads[1].frames[1].function, "operator()");
  EXPECT_EQ(threads[1].frames[2].function,
            "std::__invoke_impl<void, main()::<lambda()> >(std::__invoke_other, struct {...} &&)");
  EXPECT_EQ(threads[1].frames[3], (StackFrame{"??", "/lib/x86_64-linux-gnu/libstdc++.so.6", 0}));
}

TEST(StackFrames, OfEuStackAreReadWithTheirSourceOrLibrary) {
  const auto threads = read_stacks(StackTool::kEuStack, recorded::kEuStack, recorded::kStuckPid);
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_TRUE(threads[0].main);
  EXPECT_EQ(threads[0].frames, (Frames{{"__GI___lll_lock_wait", "../sysdeps/nptl/futex-internal.h", 146},
                                       {"__pthread_mutex_lock", "./nptl/pthread_mutex_lock.c", 48},
                                       {"Trainer<int>::step(int)", "/srv/stuck.cc", 6},
                                       {"__libc_start_main", "/usr/lib/x86_64-linux-gnu/libc.so.6", 0},
                                       {"_start", "/srv/stuck", 0}}));
  EXPECT_EQ(threads[1].id, 17317);
  EXPECT_EQ(threads[1].frames[1], (StackFrame{"??", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30", 0}));
}

TEST(StackFrames, OfPySpyAreReadWithoutVariables) {
  const auto threads = read_stacks(StackTool::kPySpy, recorded::kPySpy, recorded::kPythonPid);
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_TRUE(threads[0].main);
  EXPECT_EQ(threads[0].frames, (Frames{{"Trainer.step", "t.py", 6}, {"<module>", "t.py", 9}}));
  EXPECT_EQ(threads[1].name, "loader 1");
  EXPECT_EQ(threads[1].frames, (Frames{{"waits", "t.py", 3}, {"Thread.run", "threading.py", 975}}));
  const auto native = read_stacks(StackTool::kPySpy, recorded::kPySpyNative, recorded::kPythonPid);
  ASSERT_EQ(native.size(), 1U);
  EXPECT_EQ(native[0].frames[0], (StackFrame{"??", "libc.so.6", 0}));
  EXPECT_EQ(native[0].frames[2], (StackFrame{"Trainer.step", "t.py", 6}));
}

TEST(StackFrames, AreReadAsFarAsTheyWereWritten) {
  for (const auto& [tool, whole] :
       {std::pair(StackTool::kGdb, recorded::kGdb), std::pair(StackTool::kEuStack, recorded::kEuStack),
        std::pair(StackTool::kPySpy, recorded::kPySpy)}) {
    const auto all = read_stacks(tool, whole, recorded::kStuckPid);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const auto part = read_stacks(tool, whole.substr(0, size), recorded::kStuckPid);
      EXPECT_LE(part.size(), all.size());
    }
  }
  EXPECT_TRUE(read_stacks(StackTool::kNone, recorded::kGdb, 1).empty());
  EXPECT_TRUE(read_stacks(StackTool::kGdb, "", 1).empty());
  EXPECT_TRUE(read_stacks(StackTool::kGdb, "#\n#x\n# 1\nThread\nThread :\n", 1).empty());
}

}  // namespace
}  // namespace monarch
