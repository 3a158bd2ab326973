#include "supervisor/client/stacks/stack_fold.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

// For who asked for the stacks, and may ask again.
constexpr std::string_view kGivenLonger = " (--timeout gives it longer)";

std::string file_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

std::string key_of(const FoldedThread& thread) {
  std::string key = thread.main ? "main" : "";
  for (const FoldedFrame& frame : thread.frames) key += text('\n', frame.function, '\t', frame.place);
  return key;
}

std::string key_of(const FoldedProcess& process) {
  // One that was killed after it had shown the same frames saw the same.
  const bool shown = process.end == StacksEnd::kTimedOut && !process.threads.empty();
  const StacksEnd end = shown ? StacksEnd::kTaken : process.end;
  std::string key = text(process.name, '\n', static_cast<int>(process.tool), '\n', static_cast<int>(end));
  for (const FoldedThread& thread : process.threads) key += text("\n\n", key_of(thread));
  return key;
}

FoldedThread folded(const ThreadStack& stack) {
  FoldedThread thread{.name = stack.name, .main = stack.main, .frames = {}, .more = stack.more};
  for (const StackFrame& frame : stack.frames) {
    thread.frames.push_back({.function = frame.function,
                             .place = file_name(frame.place),
                             .first_line = frame.line,
                             .last_line = frame.line});
  }
  return thread;
}

// Of the same frames at, perhaps, other lines.
void widen(FoldedThread& thread, const FoldedThread& other) {
  for (std::size_t i = 0; i < thread.frames.size() && i < other.frames.size(); ++i) {
    FoldedFrame& frame = thread.frames[i];
    frame.first_line = std::min(frame.first_line, other.frames[i].first_line);
    frame.last_line = std::max(frame.last_line, other.frames[i].last_line);
  }
}

// The main thread first, then in an order that is that of every process of these stacks.
std::vector<FoldedThread> threads_of(const ProcessStacks& process, bool all_threads) {
  std::vector<ThreadStack> stacks = read_stacks(process.tool, process.output, process.pid);
  // py-spy shows all. Where no main thread is known, the first stands for it.
  if (!all_threads && stacks.size() > 1) stacks.resize(1);
  std::map<std::pair<bool, std::string>, FoldedThread> alike;
  for (const ThreadStack& stack : stacks) {
    FoldedThread thread = folded(stack);
    const auto [found, is_new] = alike.try_emplace({!thread.main, key_of(thread)}, thread);
    if (is_new) continue;
    widen(found->second, thread);
    found->second.fewest = ++found->second.most;
  }
  std::vector<FoldedThread> threads;
  for (auto& [key, thread] : alike) threads.push_back(std::move(thread));
  return threads;
}

std::string advice_on_refusal(std::string_view detail) {
  const auto says = [detail](std::string_view part) { return detail.find(part) != std::string_view::npos; };
  if (says("already traced")) return "";
  if (says("ptrace_scope is 1")) {
    return "; with that only a rank's own process can be looked at, not what it started: as root, there: sysctl "
           "kernel.yama.ptrace_scope=0";
  }
  if (says("ptrace_scope is 2")) return "; as root, there: sysctl kernel.yama.ptrace_scope=1";
  if (says("ptrace_scope is 3")) return "; nobody may until it is booted with another";
  return "; a container needs CAP_SYS_PTRACE for it, and one that runs under another user shows itself to root alone";
}

std::string words_of(StacksEnd end, StackTool tool, const std::string& detail, const std::string& host) {
  const auto with = [&detail](std::string words) {
    return detail.empty() ? words : text(words, ": ", printable(detail));
  };
  switch (end) {
    case StacksEnd::kTaken: return "";
    case StacksEnd::kNoTool:
      return text("no debugger is in the PATH of the worker on ", printable(host),
                  ": install elfutils (eu-stack) or gdb there, and for Python programs py-spy");
    case StacksEnd::kRefused:
      return with(text("the kernel does not let ", name_of(tool), " look at it")) + advice_on_refusal(detail);
    case StacksEnd::kEnded: return with("it had ended when it was to be looked at");
    case StacksEnd::kNotExecuted: return with("its program has not been executed yet");
    case StacksEnd::kTimedOut:
    case StacksEnd::kBusy:
    case StacksEnd::kFailed: return printable(detail);
    case StacksEnd::kUnreachable: return with(text(printable(host), " said nothing"));
  }
  return "";
}

std::vector<FoldedProcess> processes_of(const RankStacks& rank, bool all_threads) {
  std::vector<FoldedProcess> processes;
  for (const ProcessStacks& process : rank.stacks.processes) {
    FoldedProcess folded{.name = process.name,
                         .tool = process.tool,
                         .state = process.state,
                         .end = process.end,
                         .why_not = {},
                         .cut = process.cut,
                         .threads = threads_of(process, all_threads)};
    if (process.end != StacksEnd::kTaken) {
      folded.why_not = words_of(process.end, process.tool, process.detail, rank.host);
    } else if (folded.threads.empty()) {
      folded.why_not = text(name_of(process.tool), " wrote nothing that is a stack");
      folded.end = StacksEnd::kFailed;
    }
    processes.push_back(std::move(folded));
  }
  return processes;
}

std::string reason_of(const RankStacks& stacks) {
  const Stacks& told = stacks.stacks;
  if (told.end != StacksEnd::kTaken) return words_of(told.end, StackTool::kNone, told.detail, stacks.host);
  if (told.processes.empty()) return "it has no process that could be looked at";
  const ProcessStacks& own = told.processes.front();
  return words_of(own.end, own.tool, own.detail, stacks.host);
}

// Before a character that it would break.
std::string cut(std::string words, std::size_t bytes) {
  if (words.size() <= bytes) return words;
  while (bytes > 0 && (static_cast<unsigned char>(words[bytes]) & 0xC0U) == 0x80U) --bytes;
  words.resize(bytes);
  return words;
}

void add(StackGroup& group, std::size_t rank, const std::vector<FoldedProcess>& processes) {
  group.ranks.push_back(rank);
  for (std::size_t p = 0; p < processes.size(); ++p) {
    if (processes[p].why_not.empty()) group.processes[p].why_not.clear();
    for (std::size_t t = 0; t < processes[p].threads.size(); ++t) {
      FoldedThread& thread = group.processes[p].threads[t];
      const FoldedThread& other = processes[p].threads[t];
      widen(thread, other);
      thread.fewest = std::min(thread.fewest, other.fewest);
      thread.most = std::max(thread.most, other.most);
    }
  }
}

}  // namespace

std::string_view name_of(StackTool tool) {
  switch (tool) {
    case StackTool::kNone: return "a debugger";
    case StackTool::kPySpy: return "py-spy";
    case StackTool::kEuStack: return "eu-stack";
    case StackTool::kGdb: return "gdb";
  }
  return "a debugger";
}

bool any_taken(const Stacks& stacks) {
  return std::any_of(stacks.processes.begin(), stacks.processes.end(), [](const ProcessStacks& process) {
    return process.end == StacksEnd::kTaken || !read_stacks(process.tool, process.output, process.pid).empty();
  });
}

std::vector<StackGroup> fold_stacks(const std::vector<RankStacks>& all, bool all_threads) {
  std::map<std::string, StackGroup> groups;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!any_taken(all[i].stacks)) continue;
    std::vector<FoldedProcess> processes = processes_of(all[i], all_threads);
    for (FoldedProcess& process : processes) {
      if (process.end == StacksEnd::kTimedOut) process.why_not += kGivenLonger;
    }
    std::string key;
    for (const FoldedProcess& process : processes) key += text(key_of(process), "\n\n\n");
    StackGroup& group = groups[key];
    if (group.ranks.empty()) group.processes = processes;
    add(group, i, processes);
    group.untold_processes = std::max(group.untold_processes, all[i].stacks.untold_processes);
  }
  std::vector<StackGroup> sorted;
  for (auto& [key, group] : groups) sorted.push_back(std::move(group));
  std::sort(sorted.begin(), sorted.end(), [](const StackGroup& a, const StackGroup& b) {
    return a.ranks.size() != b.ranks.size() ? a.ranks.size() > b.ranks.size() : a.ranks.front() < b.ranks.front();
  });
  return sorted;
}

std::string why_not(const RankStacks& stacks) {
  const bool own = stacks.stacks.end == StacksEnd::kTaken && !stacks.stacks.processes.empty();
  const StacksEnd end = own ? stacks.stacks.processes.front().end : stacks.stacks.end;
  return reason_of(stacks) + std::string(end == StacksEnd::kTimedOut ? kGivenLonger : "");
}

std::string stack_words(const RankStacks& stacks, std::size_t bytes) {
  if (!any_taken(stacks.stacks)) return cut(reason_of(stacks), bytes);
  std::string words;
  for (const FoldedProcess& process : processes_of(stacks, false)) {
    if (!words.empty()) words += '\n';
    words += text(printable(process.name), " (", name_of(process.tool), ")");
    if (!process.why_not.empty()) words += text(": ", process.why_not);
    for (const FoldedThread& thread : process.threads) {
      for (const FoldedFrame& frame : thread.frames) {
        words += text("\n  ", printable(frame.function), frame.place.empty() ? "" : text(" (", printable(frame.place)));
        if (frame.first_line > 0) words += text(':', frame.first_line);
        if (!frame.place.empty()) words += ')';
      }
    }
  }
  return cut(std::move(words), bytes);
}

}  // namespace monarch
