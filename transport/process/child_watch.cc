#include "transport/process/child_watch.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "transport/process/process_scan.h"

namespace monarch {

namespace {

Duration duration_of(const timeval& time) {
  return Duration::seconds(time.tv_sec) + Duration::microseconds(time.tv_usec);
}

}  // namespace

std::optional<ExitStatus> peek_exit(int pidfd) {
  siginfo_t info{};
  rusage usage{};
  // The system call and not glibc's waitid, which has no rusage.
  if (::syscall(SYS_waitid, P_PIDFD, pidfd, &info, WEXITED | WNOWAIT | WNOHANG, &usage) != 0) return std::nullopt;
  if (info.si_pid == 0) return std::nullopt;
  ExitStatus status;
  status.signaled = info.si_code != CLD_EXITED;
  status.value = info.si_status;
  status.core_dumped = info.si_code == CLD_DUMPED;
  status.user_time = duration_of(usage.ru_utime);
  status.system_time = duration_of(usage.ru_stime);
  status.peak_resident_kilobytes = usage.ru_maxrss;
  return status;
}

bool was_stopped_or_continued(int pidfd) {
  siginfo_t info{};
  return ::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WSTOPPED | WCONTINUED | WNOHANG) == 0 && info.si_pid != 0;
}

ChildWatch::~ChildWatch() {
  for (const auto& [pid, child] : watched_) loop_.forget(child.watch);
}

Status ChildWatch::watch(pid_t pid, int pidfd, std::function<void(const ExitStatus&)> on_exit) {
  MONARCH_ASSIGN(const WatchId id, loop_.watch(pidfd, Interest::kRead, [this, pid](Readiness) { told(pid); }));
  watched_.emplace(pid, Watched{pidfd, id, std::move(on_exit)});
  return {};
}

void ChildWatch::told(pid_t pid) {
  const auto found = watched_.find(pid);
  if (found == watched_.end()) return;
  const auto status = peek_exit(found->second.pidfd);
  if (!status) return;
  loop_.forget(std::exchange(found->second.watch, 0));
  const auto on_exit = std::move(found->second.on_exit);
  on_exit(*status);
}

void ChildWatch::reap(pid_t pid) {
  const auto found = watched_.find(pid);
  if (found == watched_.end()) return;
  loop_.forget(found->second.watch);
  siginfo_t info{};
  // A live child is not waited for: it becomes one of those that reap_adopted() takes.
  (void)::waitid(P_PIDFD, static_cast<id_t>(found->second.pidfd), &info, WEXITED | WNOHANG);
  watched_.erase(found);
}

void ChildWatch::reap_adopted() {
  for (const pid_t pid : children_of(::getpid())) {
    // The number is that of a child of ours that only we can reap: it cannot have been used again.
    if (!watched_.contains(pid)) (void)::waitpid(pid, nullptr, WNOHANG);
  }
}

}  // namespace monarch
