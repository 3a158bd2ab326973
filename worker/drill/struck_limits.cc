#include "worker/drill/struck_limits.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "transport/base/text.h"
#include "worker/drill/targets.h"

namespace monarch {

namespace {

bool are_same(const rlimit& one, const rlimit& other) {
  return one.rlim_cur == other.rlim_cur && one.rlim_max == other.rlim_max;
}

Result<rlim_t> open_files(pid_t pid) {
  rlim_t count = 0;
  std::error_code failed;
  std::filesystem::directory_iterator entries(text("/proc/", pid, "/fd"), failed);
  for (; !failed && entries != std::filesystem::directory_iterator(); entries.increment(failed)) ++count;
  if (failed) return Error{ErrorCode::kNotFound, text("the files of process ", pid, ": ", failed.message())};
  return count;
}

Result<rlim_t> address_space(pid_t pid) {
  std::ifstream sizes(text("/proc/", pid, "/statm"));
  rlim_t pages = 0;
  if (!(sizes >> pages)) return Error{ErrorCode::kNotFound, text("the memory of process ", pid, " is not told")};
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

Status StruckLimits::plan(const ProcessEntry& process, StrikeWhat what) {
  Lowered one{.process = process, .resource = what == StrikeWhat::kNoFiles ? RLIMIT_NOFILE : RLIMIT_AS};
  MONARCH_ASSIGN(rlim_t has, what == StrikeWhat::kNoFiles ? open_files(process.pid) : address_space(process.pid));
  if (what == StrikeWhat::kNoMemory) has += kMoreMemory;
  if (::prlimit(process.pid, one.resource, nullptr, &one.before) != 0) return errno_error("prlimit", errno);
  one.now = {.rlim_cur = std::min(has, one.before.rlim_max), .rlim_max = one.before.rlim_max};
  lowered_.push_back(std::move(one));
  return {};
}

std::vector<pid_t> StruckLimits::lower() {
  std::vector<pid_t> lowered;
  for (const Lowered& one : lowered_) {
    const pid_t pid = one.process.pid;
    rlimit now{};
    const bool done = !is_gone(one.process) && ::prlimit(pid, one.resource, &one.now, nullptr) == 0 &&
                      ::prlimit(pid, one.resource, nullptr, &now) == 0 && are_same(now, one.now);
    if (done) lowered.push_back(pid);
  }
  return lowered;
}

Status StruckLimits::restore() {
  Status restored;
  for (const Lowered& one : std::exchange(lowered_, {})) {
    rlimit now{};
    if (is_gone(one.process)) continue;
    const bool done = ::prlimit(one.process.pid, one.resource, &one.before, nullptr) == 0 &&
                      ::prlimit(one.process.pid, one.resource, nullptr, &now) == 0 && are_same(now, one.before);
    if (!done && !is_gone(one.process)) {
      restored = Error{ErrorCode::kTimeout, text("process ", one.process.pid, " has not the limit that it had")};
      lowered_.push_back(one);
    }
  }
  return restored;
}

}  // namespace monarch
