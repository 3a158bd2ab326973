#include "transport/process/job_marks.h"

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

bool carries(pid_t pid, const MarkedBy& marks) {
  if (const auto worker = worker_mark(pid); worker && worker->uuid == marks.uuid) {
    if (marks.host.empty() || worker->host == marks.host) return true;
  }
  if (environment_value(pid, kJobUuidVariable) != marks.uuid) return false;
  return marks.host.empty() || environment_value(pid, kHostVariable) == marks.host;
}

std::set<pid_t> keepers_among(const std::vector<ProcessEntry>& found, const MarkedBy& marks) {
  std::set<pid_t> keepers;
  for (const ProcessEntry& entry : found) {
    const auto worker = worker_mark(entry.pid);
    if (worker && worker->keeper && worker->uuid == marks.uuid) keepers.insert(entry.pid);
  }
  return keepers;
}

}  // namespace

bool is_job_uuid(std::string_view word) {
  return word.size() == kUuidDigits &&
         std::all_of(word.begin(), word.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::optional<WorkerMark> worker_mark(pid_t pid) {
  const std::vector<std::string> arguments = arguments_of(pid);
  if (arguments.empty()) return std::nullopt;
  const std::string_view program = arguments[0];
  if (program.substr(program.rfind('/') + 1) != kWorkerProgram) return std::nullopt;
  const bool keeper = arguments.size() == 5;
  const std::size_t first = keeper ? 1 : 2;
  const bool daemon = arguments.size() == 6 && (arguments[1] == kDaemonArgument || arguments[1] == kPostArgument ||
                                                arguments[1] == kVaultArgument || arguments[1] == kStepArgument);
  const bool workspace = arguments.size() == 8 && arguments[1] == kWorkspaceArgument;
  if (!keeper && !daemon && !workspace) return std::nullopt;
  if (arguments[first] != kJobArgument || arguments[first + 2] != kHostArgument || !is_job_uuid(arguments[first + 1])) {
    return std::nullopt;
  }
  return WorkerMark{.uuid = arguments[first + 1], .host = arguments[first + 3], .keeper = keeper};
}

std::optional<std::string> supervisor_mark(pid_t pid) {
  const std::vector<std::string> arguments = arguments_of(pid);
  const bool supervises =
      arguments.size() > 3 && arguments[1] == kSuperviseArgument && arguments[2] == kJobDirectoryArgument;
  return supervises ? std::optional(arguments[3]) : std::nullopt;
}

std::optional<std::string> job_mark(pid_t pid) {
  if (auto worker = worker_mark(pid)) return worker->uuid;
  auto uuid = environment_value(pid, kJobUuidVariable);
  return uuid && is_job_uuid(*uuid) ? uuid : std::nullopt;
}

bool carries_mark(pid_t pid, const std::string& uuid) { return carries(pid, {.uuid = uuid}); }

std::map<std::string, std::vector<ProcessEntry>> marked_processes() {
  std::map<std::string, std::vector<ProcessEntry>> marked;
  for (const ProcessEntry& entry : list_processes()) {
    if (entry.dead()) continue;
    if (const auto uuid = job_mark(entry.pid)) marked[*uuid].push_back(entry);
  }
  return marked;
}

std::vector<ProcessEntry> processes_of_job(const MarkedBy& marks) {
  std::vector<ProcessEntry> found = with_descendants(
      list_processes(), [&](const ProcessEntry& entry) { return !entry.dead() && carries(entry.pid, marks); });
  std::erase_if(found, [](const ProcessEntry& entry) { return entry.pid == ::getpid(); });
  return found;
}

EndedProcesses end_marked(const MarkedBy& marks, Duration patience) {
  const Instant deadline = boot_now() + patience;
  std::set<std::pair<pid_t, unsigned long long>> seen;
  for (;;) {
    const std::vector<ProcessEntry> found = processes_of_job(marks);
    if (found.empty()) return {.ended = seen.size(), .left = {}};
    const bool last = boot_now() >= deadline;
    const std::set<pid_t> keepers = keepers_among(found, marks);
    const bool keepers_too = last || keepers.size() == found.size();
    EndedProcesses result;
    for (const ProcessEntry& entry : found) {
      const UniqueFd pidfd = open_process(entry);
      const int signal = keepers.contains(entry.pid) && !keepers_too ? SIGSTOP : SIGKILL;
      if (pidfd.valid()) (void)send_signal(pidfd.get(), signal);  // one that has ended is what was wanted
      last ? (void)seen.erase({entry.pid, entry.start}) : (void)seen.insert({entry.pid, entry.start});
      result.left.push_back(entry.pid);
    }
    result.ended = seen.size();
    if (last) return result;
    pause_between_looks();
  }
}

}  // namespace monarch
