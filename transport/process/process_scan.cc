#include "transport/process/process_scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <set>

#include "transport/base/text.h"
#include "transport/base/time.h"
#include "transport/process/spawn.h"

namespace monarch {

namespace {

constexpr Duration kLook = Duration::milliseconds(20);
constexpr int kLooksAtAnExec = 20;
constexpr int kSettledLooks = 4;
constexpr int kBetweenLooksMilliseconds = 1;
constexpr unsigned long long kExiting = 0x4;  // PF_EXITING of Linux's sched.h (proc_pid_stat(5))

// Of /proc, whose files have no size until they are read.
std::string read_all(const std::string& path) {
  std::string content;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return content;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got <= 0) return content;
    content.append(buffer, static_cast<std::size_t>(got));
  }
}

template <class Number>
bool take_number(std::string_view& rest, Number& number) {
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (parsed.ec != std::errc()) return false;
  rest.remove_prefix(static_cast<std::size_t>(parsed.ptr - rest.data()));
  return true;
}

bool parse_stat(std::string_view line, ProcessEntry& entry) {
  // The name in parentheses may hold anything, so the fields are counted from the last parenthesis.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= line.size()) return false;
  std::string_view rest = line.substr(name_end + 2);
  entry.state = rest.front();
  rest.remove_prefix(1);
  pid_t group = 0;
  if (!take_number(rest, entry.parent) || !take_number(rest, group) || !take_number(rest, entry.session)) return false;
  const auto skip = [&rest](int fields) {
    long long skipped = 0;
    unsigned long long big = 0;
    for (int i = 0; i < fields; ++i) {
      if (!take_number(rest, skipped) && !take_number(rest, big)) return false;
    }
    return true;
  };
  // tty_nr (7) and tpgid stand before flags (9), twelve fields between those and starttime (22).
  return skip(2) && take_number(rest, entry.flags) && skip(12) && take_number(rest, entry.start);
}

std::vector<pid_t> numbers_in(const std::string& path) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (!folder) return numbers;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string_view name(entry->d_name);
    pid_t number = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
    if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size()) numbers.push_back(number);
  }
  return numbers;
}

// WARNING: while a process executes another program its environment and its arguments are empty for a moment: it has
// its new memory, and nothing is in it yet (execve(2), proc_pid_environ(5)). Taken for an answer that would be a tree
// without the process. What has ended, threads of the kernel and what has cleared its environment are not waited for.
std::string environment_of(pid_t pid) {
  int settled = 0;  // looks at which it executed nothing: one may lie between two programs
  for (int look = 0;; ++look) {
    std::string content = read_all(text("/proc/", pid, "/environ"));
    if (!content.empty() || look == kLooksAtAnExec) return content;
    const auto entry = read_process(pid);
    char program[8];
    const bool runs =
        entry && !entry->dead() && ::readlink(text("/proc/", pid, "/exe").c_str(), program, sizeof program) > 0;
    if (!runs) return read_all(text("/proc/", pid, "/environ"));  // it may have come meanwhile
    const bool executes = read_all(text("/proc/", pid, "/cmdline")).empty();
    settled = executes ? 0 : settled + 1;
    if (settled == kSettledLooks) return content;
    if (executes) (void)::poll(nullptr, 0, kBetweenLooksMilliseconds);
  }
}

}  // namespace

bool is_ending(pid_t pid) {
  const std::string folder = text("/proc/", pid);
  // Its descriptors are open until the dump is written, which can take minutes.
  if (read_all(folder + "/status").find("\nCoreDumping:\t1") != std::string::npos) return true;
  const auto exits = [](const std::string& stat) {
    ProcessEntry entry;
    return !parse_stat(stat, entry) || entry.dead() || (entry.flags & kExiting) != 0;
  };
  if (!exits(read_all(folder + "/stat"))) return false;
  // The first thread may be gone, and the program goes on in others.
  const std::vector<pid_t> threads = numbers_in(folder + "/task");
  return std::all_of(threads.begin(), threads.end(),
                     [&](pid_t thread) { return exits(read_all(text(folder, "/task/", thread, "/stat"))); });
}

std::optional<ProcessEntry> read_process(pid_t pid) {
  ProcessEntry entry;
  entry.pid = pid;
  if (!parse_stat(read_all(text("/proc/", pid, "/stat")), entry)) return std::nullopt;
  return entry;
}

std::vector<ProcessEntry> list_processes() {
  std::vector<ProcessEntry> all;
  for (const pid_t pid : numbers_in("/proc")) {
    if (const auto process = read_process(pid)) all.push_back(*process);
  }
  return all;
}

bool environment_contains(pid_t pid, const std::vector<std::string>& lines) {
  const std::string path = text("/proc/", pid, "/environ");
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || status.st_uid != ::geteuid()) return false;
  const std::string content = environment_of(pid);
  return std::all_of(lines.begin(), lines.end(), [&content](const std::string& line) {
    // Lines end with a NUL, so a line is found whole or not at all.
    const std::string ended(line.c_str(), line.size() + 1);
    return content.starts_with(ended) || content.find(std::string(1, '\0') + ended) != std::string::npos;
  });
}

std::optional<std::string> environment_value(pid_t pid, std::string_view name) {
  const std::string path = text("/proc/", pid, "/environ");
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || status.st_uid != ::geteuid()) return std::nullopt;
  const std::string content = environment_of(pid);
  std::string_view rest = content;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\0'));
    if (line.starts_with(name) && line.substr(name.size()).starts_with('=')) {
      return std::string(line.substr(name.size() + 1));
    }
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return std::nullopt;
}

std::vector<std::string> arguments_of(pid_t pid) {
  // The folder is its user's; the files in it are root's where a process hides its memory (proc_pid(5)).
  struct stat status {};
  std::vector<std::string> arguments;
  if (::stat(text("/proc/", pid).c_str(), &status) != 0 || status.st_uid != ::geteuid()) return arguments;
  const std::string content = read_all(text("/proc/", pid, "/cmdline"));
  std::string_view rest = content;
  while (!rest.empty()) {
    arguments.emplace_back(rest.substr(0, rest.find('\0')));
    rest.remove_prefix(std::min(arguments.back().size() + 1, rest.size()));
  }
  return arguments;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  // Of the first thread alone: no other of ours forks, nor of a shell.
  const std::string path = text("/proc/", parent, "/task/", parent, "/children");
  if (::access(path.c_str(), R_OK) != 0) {  // a kernel without CONFIG_PROC_CHILDREN
    for (const ProcessEntry& entry : list_processes()) {
      if (entry.parent == parent) children.push_back(entry.pid);
    }
    return children;
  }
  const std::string content = read_all(path);
  std::string_view rest = content;
  for (pid_t child = 0; take_number(rest, child);) children.push_back(child);
  return children;
}

std::vector<ProcessEntry> with_descendants(const std::vector<ProcessEntry>& all,
                                           const std::function<bool(const ProcessEntry&)>& is_seed) {
  std::set<pid_t> members;
  for (const ProcessEntry& entry : all) {
    if (is_seed(entry)) members.insert(entry.pid);
  }
  // Numbers wrap around, so a child may be listed before its parent: repeat until nothing is added.
  for (bool grew = !members.empty(); grew;) {
    grew = false;
    for (const ProcessEntry& entry : all) {
      if (members.contains(entry.parent) && members.insert(entry.pid).second) grew = true;
    }
  }
  std::vector<ProcessEntry> found;
  for (const ProcessEntry& entry : all) {
    if (members.contains(entry.pid) && !entry.dead()) found.push_back(entry);
  }
  return found;
}

UniqueFd open_process(const ProcessEntry& entry) {
  UniqueFd pidfd = open_pidfd(entry.pid);
  if (!pidfd.valid()) return pidfd;
  const auto again = read_process(entry.pid);
  if (!again || again->start != entry.start || again->dead()) return UniqueFd();
  return pidfd;
}

void pause_between_looks() { (void)::poll(nullptr, 0, static_cast<int>(kLook.count_milliseconds())); }

}  // namespace monarch
