#pragma once

// Runs a function in a forked child, so that a test may change what belongs to a process: its user, its locks.

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace monarch::testing {

// The child's exit code, or -1 if a signal ended it. The function runs without the parent's threads.
inline int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

}  // namespace monarch::testing
