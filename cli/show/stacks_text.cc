#include "cli/show/stacks_text.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cli/term/terminal.h"
#include "supervisor/client/stacks/stack_fold.h"
#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kHostsNamed = 8;

// "trainer/0-2,4-7 loader/1"
std::string ranks_text(const StacksShown& shown, const std::vector<std::size_t>& which) {
  std::map<std::uint32_t, std::set<std::uint32_t>> by_mesh;
  for (const std::size_t i : which) by_mesh[shown.ranks[i].rank.mesh.value()].insert(shown.ranks[i].rank.rank.value());
  std::string out;
  for (const auto& [mesh, ranks] : by_mesh) {
    out += text(out.empty() ? "" : " ", shown.meshes[mesh], '/');
    bool first = true;
    for (auto from = ranks.begin(); from != ranks.end();) {
      auto to = from;
      while (std::next(to) != ranks.end() && *std::next(to) == *to + 1) ++to;
      out += text(std::exchange(first, false) ? "" : ",", *from);
      if (to != from) out += text('-', *to);
      from = std::next(to);
    }
  }
  return out;
}

std::string hosts_text(const StacksShown& shown, const std::vector<std::size_t>& which) {
  std::vector<std::string> hosts;
  for (const std::size_t i : which) {
    const std::string& host = shown.ranks[i].host;
    if (std::find(hosts.begin(), hosts.end(), host) == hosts.end()) hosts.push_back(host);
  }
  const std::size_t more = hosts.size() > kHostsNamed ? hosts.size() - kHostsNamed : 0;
  hosts.resize(hosts.size() - more);
  std::string out;
  for (const std::string& host : hosts) out += text(out.empty() ? "" : " ", printable(host));
  return more == 0 ? out : text(out, " and ", counted(more, "host"), " more");
}

std::string frame_text(const FoldedFrame& frame) {
  std::string out = printable(frame.function);
  if (frame.place.empty()) return out;
  out += text(" (", printable(frame.place));
  if (frame.first_line > 0) out += text(':', frame.first_line);
  if (frame.last_line > frame.first_line) out += text('-', frame.last_line);
  return out + ')';
}

std::string thread_text(const FoldedThread& thread, bool titled) {
  std::string out;
  if (titled) {
    const std::string name = thread.name.empty() ? "" : text(" \"", printable(thread.name), '"');
    out = thread.most == 1 ? text("    ", thread.main ? "main thread" : "thread", name, ":\n")
                           : text("    ", thread.fewest == thread.most ? "" : text(thread.fewest, " to "), thread.most,
                                  " threads, such as", name.empty() ? " this" : name, ":\n");
  }
  for (const FoldedFrame& frame : thread.frames) out += text("    ", titled ? "  " : "", frame_text(frame), '\n');
  if (thread.more) out += text("    ", titled ? "  " : "", "... and what called it\n");
  return out;
}

std::string process_text(const FoldedProcess& process, bool all_threads) {
  std::string out = text("  ", process.name.empty() ? "a process" : printable(process.name));
  if (!process.threads.empty()) out += text(" (by ", name_of(process.tool), ')');
  if (process.state.starts_with('D')) out += text(", in uninterruptible sleep, state ", printable(process.state));
  if (process.state == "T") out += ", stopped";
  if (!process.why_not.empty()) out += text(": ", process.why_not);
  out += '\n';
  for (const FoldedThread& thread : process.threads) out += thread_text(thread, all_threads);
  if (process.cut) out += "    ... cut: the debugger wrote more than is kept\n";
  return out;
}

std::string group_text(const StacksShown& shown, const StackGroup& group, bool colour) {
  std::string out = text('\n', paint(Colour::kBold, text(counted(group.ranks.size(), "rank"), ": "), colour),
                         ranks_text(shown, group.ranks), " on ", hosts_text(shown, group.ranks), '\n');
  for (const FoldedProcess& process : group.processes) out += process_text(process, shown.all_threads);
  if (group.untold_processes > 0) {
    out += text("  and ", group.untold_processes, group.untold_processes == 1 ? " process" : " processes",
                " that nobody looked at\n");
  }
  return out;
}

std::string missing_text(const StacksShown& shown) {
  std::map<std::string, std::vector<std::size_t>> by_words;
  std::size_t count = 0;
  for (std::size_t i = 0; i < shown.ranks.size(); ++i) {
    if (any_taken(shown.ranks[i].stacks)) continue;
    by_words[why_not(shown.ranks[i])].push_back(i);
    ++count;
  }
  if (count == 0) return "";
  std::string out = text("\nnot shown: ", counted(count, "rank"), '\n');
  for (const auto& [words, which] : by_words) {
    out += text("  ", ranks_text(shown, which), " on ", hosts_text(shown, which), ": ", words, '\n');
  }
  return out;
}

Json frame_json(const StackFrame& frame) {
  return Json::object({{"function", frame.function},
                       {"place", frame.place.empty() ? Json() : Json(frame.place)},
                       {"line", frame.line == 0 ? Json() : Json(frame.line)}});
}

Json process_json(const ProcessStacks& process, bool all_threads) {
  Json threads = Json::array();
  for (const ThreadStack& thread : read_stacks(process.tool, process.output, process.pid)) {
    if (!all_threads && !threads.items().empty()) break;
    Json frames = Json::array();
    for (const StackFrame& frame : thread.frames) frames.append(frame_json(frame));
    threads.append(Json::object({{"id", thread.id},
                                 {"name", thread.name.empty() ? Json() : Json(thread.name)},
                                 {"main", thread.main},
                                 {"frames", std::move(frames)},
                                 {"more", thread.more}}));
  }
  return Json::object({{"pid", process.pid},
                       {"name", process.name},
                       {"state", process.state},
                       {"tool", process.tool == StackTool::kNone ? Json() : Json(name_of(process.tool))},
                       {"taken", process.end == StacksEnd::kTaken},
                       {"detail", process.detail.empty() ? Json() : Json(process.detail)},
                       {"cut", process.cut},
                       {"threads", std::move(threads)}});
}

}  // namespace

std::string stacks_text(const StacksShown& shown, bool colour) {
  const std::vector<StackGroup> groups = fold_stacks(shown.ranks, shown.all_threads);
  std::string sizes;
  for (const StackGroup& group : groups) sizes += text(sizes.empty() ? "" : " + ", group.ranks.size());
  std::string out = text(counted(shown.ranks.size(), "rank"), " of ", shown.job,
                         groups.empty()                                 ? ""
                         : groups.size() == 1 && shown.ranks.size() > 1 ? ": alike"
                                                                        : "",
                         groups.size() > 1 ? text(": ", sizes) : "", '\n');
  for (const StackGroup& group : groups) out += group_text(shown, group, colour);
  return out + missing_text(shown);
}

std::string stacks_json(const StacksShown& shown) {
  const std::vector<StackGroup> groups = fold_stacks(shown.ranks, shown.all_threads);
  std::vector<Json> group_of(shown.ranks.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const std::size_t i : groups[g].ranks) group_of[i] = Json(static_cast<std::uint64_t>(g + 1));
  }
  std::string out;
  for (std::size_t i = 0; i < shown.ranks.size(); ++i) {
    const RankStacks& rank = shown.ranks[i];
    const bool taken = any_taken(rank.stacks);
    Json processes = Json::array();
    for (const ProcessStacks& process : rank.stacks.processes) {
      processes.append(process_json(process, shown.all_threads));
    }
    out += to_json(Json::object({{"v", 1},
                                 {"mesh", shown.meshes[rank.rank.mesh.value()]},
                                 {"rank", rank.rank.rank.value()},
                                 {"host", rank.host},
                                 {"generation", rank.generation},
                                 {"group", group_of[i]},
                                 {"why_not", taken ? Json() : Json(why_not(rank))},
                                 {"processes", std::move(processes)}}));
    out += '\n';
  }
  return out;
}

std::string stacks_raw(const StacksShown& shown) {
  std::string out;
  for (std::size_t i = 0; i < shown.ranks.size(); ++i) {
    const RankStacks& rank = shown.ranks[i];
    out += text(out.empty() ? "" : "\n", "== ", ranks_text(shown, {i}), " on ", printable(rank.host), '\n');
    if (rank.stacks.processes.empty()) out += text(why_not(rank), '\n');
    for (const ProcessStacks& process : rank.stacks.processes) {
      out += text("-- ", process.pid, ' ', printable(process.name), ", ", name_of(process.tool),
                  process.detail.empty() ? "" : text(": ", printable(process.detail)), '\n');
      std::string_view rest = process.output;
      while (!rest.empty()) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        out += text(printable(line), '\n');
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      }
    }
  }
  return out;
}

std::vector<std::string> hosts_without_py_spy(const StacksShown& shown) {
  std::set<std::string> hosts;
  for (const RankStacks& rank : shown.ranks) {
    for (const ProcessStacks& process : rank.stacks.processes) {
      const bool native = process.tool == StackTool::kEuStack || process.tool == StackTool::kGdb;
      if (native && process.end == StacksEnd::kTaken && process.name.starts_with("python")) hosts.insert(rank.host);
    }
  }
  return {hosts.begin(), hosts.end()};
}

}  // namespace monarch
