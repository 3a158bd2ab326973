#include "worker/core/stack_tool.h"

#include <algorithm>
#include <array>

#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kDetailBytes = 300;

std::string_view file_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

template <class Each>
bool any_line(std::string_view words, Each each) {
  while (!words.empty()) {
    const std::string_view line = words.substr(0, words.find('\n'));
    if (each(line)) return true;
    words.remove_prefix(std::min(line.size() + 1, words.size()));
  }
  return false;
}

bool is_frame(StackTool tool, std::string_view line) {
  if (tool == StackTool::kPySpy) return line.starts_with("    ") && line.find('(') != std::string_view::npos;
  return line.size() > 1 && line[0] == '#' && line[1] >= '0' && line[1] <= '9';
}

bool has(std::string_view words, std::string_view part) { return words.find(part) != std::string_view::npos; }

bool says_refused(std::string_view words) {
  return has(words, "Operation not permitted") || has(words, "ermission denied") || has(words, "ermission Denied") ||
         has(words, "already traced");
}

// The line that says most: that of an error before a warning before any.
std::string first_words(std::string_view words) {
  std::string_view best;
  int best_rank = -1;
  (void)any_line(words, [&](std::string_view line) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return false;
    const int rank = has(line, "already traced")               ? 3
                     : says_refused(line) || has(line, "rror") ? 2
                     : has(line, "arning")                     ? 0
                                                               : 1;
    if (rank > best_rank) {
      best = line;
      best_rank = rank;
    }
    return false;
  });
  return printable(best.substr(0, kDetailBytes));
}

std::vector<std::string> gdb_command(const std::string& pid, bool all_threads) {
  // No start-up files, nothing that lies beside the program is loaded, nothing is fetched.
  return {"gdb",  "-nx",
          "-nh",  "-batch",
          "-iex", "set auto-load no",
          "-iex", "set width 0",
          "-iex", "set height 0",
          "-iex", "set style enabled off",
          "-iex", "set print frame-arguments none",
          "-p",   pid,
          "-ex",  text("thread apply ", all_threads ? "all" : "1", " backtrace ", kStackFrames)};
}

std::vector<std::string> eu_stack_command(const std::string& pid, bool all_threads) {
  std::vector<std::string> words{"eu-stack", "-m", "-s", "-n", std::to_string(kStackFrames)};
  if (!all_threads) words.emplace_back("-1");
  words.insert(words.end(), {"-p", pid});
  return words;
}

std::vector<std::string> py_spy_command(const std::string& pid, const StackTarget& target, bool native) {
  std::vector<std::string> words{"py-spy", "dump"};
  if (native) words.emplace_back("--native");
  // One that is stopped cannot be paused, and need not be.
  if (target.state == 'T' || target.state == 't') words.emplace_back("--nonblocking");
  words.insert(words.end(), {"--pid", pid});
  return words;
}

}  // namespace

bool is_python(std::string_view executable) { return file_name(executable).starts_with("python"); }

std::vector<StackTool> stack_tools_for(const StackTarget& target) {
  if (is_python(target.executable)) return {StackTool::kPySpy, StackTool::kEuStack, StackTool::kGdb};
  return {StackTool::kEuStack, StackTool::kGdb};
}

std::string_view stack_program(StackTool tool) {
  switch (tool) {
    case StackTool::kNone: return "";
    case StackTool::kPySpy: return "py-spy";
    case StackTool::kEuStack: return "eu-stack";
    case StackTool::kGdb: return "gdb";
  }
  return "";
}

std::vector<std::string> stack_command(StackTool tool, const StackTarget& target, const StackWish& wish) {
  const std::string pid = std::to_string(target.pid);
  switch (tool) {
    case StackTool::kNone: break;
    case StackTool::kPySpy: return py_spy_command(pid, target, wish.native);
    case StackTool::kEuStack: return eu_stack_command(pid, wish.all_threads);
    case StackTool::kGdb: return gdb_command(pid, wish.all_threads);
  }
  MONARCH_ASSERT(false);
  return {};
}

Environment stack_environment(const Environment& base) {
  Environment environment{{"LC_ALL", "C"}, {"TERM", "dumb"}};
  std::string path;
  const auto found = base.find("PATH");
  std::string_view rest = found == base.end() ? "/usr/local/bin:/usr/bin:/bin" : std::string_view(found->second);
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    if (folder.starts_with('/')) path += text(path.empty() ? "" : ":", folder);
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
  }
  environment["PATH"] = path.empty() ? "/usr/bin:/bin" : path;
  if (const auto home = base.find("HOME"); home != base.end()) environment["HOME"] = home->second;
  return environment;
}

StackVerdict judge(StackTool tool, const StackToolEnd& end) {
  if (any_line(end.output, [tool](std::string_view line) { return is_frame(tool, line); })) {
    return {StacksEnd::kTaken, ""};
  }
  const std::string words = first_words(end.error);
  if (says_refused(end.error)) return {StacksEnd::kRefused, words};
  if (has(end.error, "No such process")) return {StacksEnd::kEnded, words};
  const std::string how = end.signaled ? text(stack_program(tool), " was ended by signal ", end.value)
                                       : text(stack_program(tool), " showed no stack and ended with ", end.value);
  return {StacksEnd::kFailed, words.empty() ? how : text(how, ": ", words)};
}

}  // namespace monarch
