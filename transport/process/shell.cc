#include "transport/process/shell.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <string_view>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::array<std::string_view, 11> kShells{"sh",    "bash", "dash", "ash",  "busybox", "zsh",
                                                   "ksh93", "mksh", "fish", "tcsh", "csh"};
constexpr int kDeepest = 8;  // shells within shells; deeper ones are left to whoever ends the whole tree

bool runs_shell(pid_t pid) {
  std::array<char, PATH_MAX> target;
  const ssize_t bytes = ::readlink(text("/proc/", pid, "/exe").c_str(), target.data(), target.size());
  if (bytes <= 0) return false;
  std::string_view program(target.data(), static_cast<std::size_t>(bytes));
  program.remove_prefix(program.rfind('/') + 1);
  return std::find(kShells.begin(), kShells.end(), program) != kShells.end();
}

void add_awaited(pid_t pid, int depth, std::vector<ProcessEntry>& found) {
  if (depth == kDeepest || !runs_shell(pid)) return;
  for (const pid_t child : children_of(pid)) {
    const auto entry = read_process(child);
    if (!entry || entry->dead()) continue;
    found.push_back(*entry);
    add_awaited(child, depth + 1, found);
  }
}

}  // namespace

std::vector<ProcessEntry> awaited_by_shell(pid_t pid) {
  std::vector<ProcessEntry> found;
  add_awaited(pid, 0, found);
  return found;
}

}  // namespace monarch
