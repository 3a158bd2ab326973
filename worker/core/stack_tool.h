#pragma once

// StackTool as a command: which debuggers are tried for a process and in which order, the words each is called with,
// and what its end means. The words are ours alone: nothing of a spec, a rank or a question is among them but the
// process's number and what is asked for.
//
// Thread: pure functions.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/messages/stacks.h"
#include "worker/core/environment.h"

namespace monarch {

struct StackTarget {
  std::int32_t pid = 0;
  std::string executable;  // the path of its program, as the kernel has it
  char state = '?';        // of proc_pid_stat(5)
};

// The innermost ones of a thread; more are said to be more.
inline constexpr int kStackFrames = 100;

struct StackWish {
  bool all_threads = false;
  bool native = false;
};

bool is_python(std::string_view executable);

// In the order of trying; one that is not there, or that fails with a program it does not understand, is followed by
// the next.
std::vector<StackTool> stack_tools_for(const StackTarget& target);
std::vector<std::string> stack_command(StackTool tool, const StackTarget& target, const StackWish& wish);
std::string_view stack_program(StackTool tool);

// Of the keeper's own: where programs are, as far as that does not depend on a working directory, and where its user is
// at home.
Environment stack_environment(const Environment& base);

struct StackToolEnd {
  bool signaled = false;
  int value = 0;  // the signal, else the exit code
  std::string_view output;
  std::string_view error;
};
struct StackVerdict {
  StacksEnd end = StacksEnd::kFailed;
  std::string detail;
};
StackVerdict judge(StackTool tool, const StackToolEnd& end);

}  // namespace monarch
