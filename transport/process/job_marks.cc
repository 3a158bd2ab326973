#include "transport/process/job_marks.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/launcher_variables.h"
#include "transport/base/marks.h"
#include "transport/process/spawn.h"

namespace monarch {

namespace {

constexpr std::size_t kUuidDigits = 32;
constexpr std::string_view kWorkerProgram = "monarch-worker";
constexpr Duration kLook = Duration::milliseconds(20);

bool is_uuid(std::string_view word) {
  return word.size() == kUuidDigits &&
         std::all_of(word.begin(), word.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::optional<std::string> keeper_mark(const std::vector<std::string>& arguments) {
  if (arguments.size() != 5 || arguments[1] != kJobArgument || arguments[3] != kHostArgument) return std::nullopt;
  const std::string_view program = arguments[0];
  if (program.substr(program.rfind('/') + 1) != kWorkerProgram || !is_uuid(arguments[2])) return std::nullopt;
  return arguments[2];
}

}  // namespace

std::optional<std::string> job_mark(pid_t pid) {
  if (auto uuid = keeper_mark(arguments_of(pid))) return uuid;
  auto uuid = environment_value(pid, kJobUuidVariable);
  return uuid && is_uuid(*uuid) ? uuid : std::nullopt;
}

bool carries_mark(pid_t pid, const std::string& uuid) {
  return keeper_mark(arguments_of(pid)) == uuid || environment_value(pid, kJobUuidVariable) == uuid;
}

std::map<std::string, std::vector<ProcessEntry>> marked_processes() {
  std::map<std::string, std::vector<ProcessEntry>> marked;
  for (const ProcessEntry& entry : list_processes()) {
    if (entry.dead()) continue;
    if (const auto uuid = job_mark(entry.pid)) marked[*uuid].push_back(entry);
  }
  return marked;
}

std::vector<ProcessEntry> processes_of_job(const std::string& uuid) {
  std::vector<ProcessEntry> found = with_descendants(
      list_processes(), [&](const ProcessEntry& entry) { return !entry.dead() && carries_mark(entry.pid, uuid); });
  std::erase_if(found, [](const ProcessEntry& entry) { return entry.pid == ::getpid(); });
  return found;
}

EndedProcesses end_marked(const std::string& uuid, Duration patience) {
  const Instant deadline = boot_now() + patience;
  std::set<std::pair<pid_t, unsigned long long>> seen;
  for (;;) {
    const std::vector<ProcessEntry> found = processes_of_job(uuid);
    if (found.empty()) return {.ended = seen.size(), .left = {}};
    if (boot_now() >= deadline) {
      EndedProcesses result;
      for (const ProcessEntry& entry : found) {
        result.left.push_back(entry.pid);
        seen.erase({entry.pid, entry.start});
      }
      result.ended = seen.size();
      return result;
    }
    for (const ProcessEntry& entry : found) {
      seen.insert({entry.pid, entry.start});
      const UniqueFd pidfd = open_process(entry);
      if (pidfd.valid()) (void)send_signal(pidfd.get(), SIGKILL);  // one that has ended is what was wanted
    }
    (void)::poll(nullptr, 0, static_cast<int>(kLook.count_milliseconds()));
  }
}

}  // namespace monarch
