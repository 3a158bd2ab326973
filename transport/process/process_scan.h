#pragma once

// What /proc tells of the processes of this machine, and how one that was found there is signalled without ever hitting
// another that took its number: through a pidfd, after a second look.
//
// Thread: any. Reads /proc only; pause_between_looks() blocks.

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/unique_fd.h"

namespace monarch {

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  char state = '?';              // of proc_pid_stat(5): Z and X are dead
  unsigned long long flags = 0;  // of the kernel, for its first thread
  unsigned long long start = 0;  // ticks since boot: tells two processes of one number apart
  bool dead() const { return state == 'Z' || state == 'X' || state == 'x'; }
};

// Whether it has begun to end: its exit runs, it waits to be reaped, or its memory is being dumped.
bool is_ending(pid_t pid);

std::vector<ProcessEntry> list_processes();
std::optional<ProcessEntry> read_process(pid_t pid);

// Whether it is of our uid and its environment, as it was executed, has all these NAME=value lines.
bool environment_contains(pid_t pid, const std::vector<std::string>& lines);

// Of a process of our uid: the value of a variable in its environment, as it was executed.
std::optional<std::string> environment_value(pid_t pid, std::string_view name);
// Of a process of our uid: its command line, which also one shows that hides its memory. Empty: of another, or none.
std::vector<std::string> arguments_of(pid_t pid);

std::vector<pid_t> children_of(pid_t parent);

// All live ones of `seeds` and what descends from them.
std::vector<ProcessEntry> with_descendants(const std::vector<ProcessEntry>& all,
                                           const std::function<bool(const ProcessEntry&)>& is_seed);

// A pidfd that is certainly of this entry's process, or none if it has ended.
UniqueFd open_process(const ProcessEntry& entry);

// For who waits, without an event to wait for, until what was killed has gone.
void pause_between_looks();

}  // namespace monarch
