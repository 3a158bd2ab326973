#include "transport/process/spawn.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <limits>
#include <string_view>
#include <utility>

#include "transport/base/text.h"
#include "transport/process/cgroup.h"
#include "transport/process/child_steps.h"

namespace monarch {

namespace {

constexpr int kFirstPreparedDescriptor = 16;        // above every target, so that no dup2 hits one that is still needed
constexpr unsigned kSignalProcessGroup = 1U << 2U;  // PIDFD_SIGNAL_PROCESS_GROUP, Linux 6.9

// A copy above every target, close-on-exec.
UniqueFd copy_high(int fd, int above) { return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, above)); }

// Every number but these.
std::vector<std::pair<unsigned, unsigned>> complement(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  std::vector<std::pair<unsigned, unsigned>> ranges;
  unsigned next = 0;
  for (const int fd : kept) {
    const auto number = static_cast<unsigned>(fd);
    if (number > next) ranges.emplace_back(next, number - 1);
    next = std::max(next, number + 1);
  }
  ranges.emplace_back(next, std::numeric_limits<unsigned>::max());
  return ranges;
}

bool prepare_descriptors(const SpawnOptions& options, int line, PreparedChild& prepared) {
  int above = kFirstPreparedDescriptor;
  for (const ChildDescriptor& descriptor : options.descriptors) above = std::max(above, descriptor.target + 1);
  std::vector<int> kept = options.kept;
  const auto add = [&](int source, int target) {
    UniqueFd copy = copy_high(source, above);
    if (!copy.valid()) return false;
    prepared.descriptors.push_back({copy.get(), target});
    prepared.copies.push_back(std::move(copy));
    kept.push_back(target);
    return true;
  };
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid()) return false;
  for (int target = 0; target <= 2; ++target) {
    const bool named = std::any_of(options.descriptors.begin(), options.descriptors.end(),
                                   [target](const ChildDescriptor& d) { return d.target == target; });
    if (!named && !add(null.get(), target)) return false;
  }
  for (const ChildDescriptor& descriptor : options.descriptors) {
    if (!add(descriptor.source, descriptor.target)) return false;
  }
  prepared.line = copy_high(line, above);
  if (!prepared.line.valid()) return false;
  kept.push_back(prepared.line.get());
  prepared.closed = complement(std::move(kept));
  return true;
}

}  // namespace

StepFailure step_failure(const Error& error) {
  StepFailure failure{error.errno_value != 0 ? error.errno_value : EIO, error.message};
  const std::string word = text(": ", system_word(error.errno_value));
  if (failure.detail.ends_with(word)) failure.detail.erase(failure.detail.size() - word.size());
  return failure;
}

std::variant<std::unique_ptr<Child>, StepFailure> Child::fork(const SpawnOptions& options) {
  if (options.program.empty()) return StepFailure{EINVAL, "exec nothing: the program is empty"};
  // One descriptor here while it stands at its gate, of which there may be many.
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return StepFailure{errno, "make a gate"};
  UniqueFd here(ends[0]);
  const UniqueFd there(ends[1]);

  PreparedChild prepared;
  prepared.options = &options;
  prepared.parent = ::getpid();
  if (!prepare_descriptors(options, there.get(), prepared)) {
    return StepFailure{errno, "copy its descriptors"};
  }
  const auto [pid, inside] = options.group != nullptr ? options.group->fork() : CgroupFolder::Forked{.pid = ::fork()};
  if (pid < 0) return StepFailure{errno, "fork"};
  if (pid == 0) run_child(prepared, inside);
  // Race free: only this process can reap the child, and it has not.
  UniqueFd pidfd = open_pidfd(pid);
  if (!pidfd.valid()) {
    const int error = errno;
    here.reset();  // which ends the child
    (void)::waitpid(pid, nullptr, 0);
    return StepFailure{error, "open a pidfd"};
  }
  return std::unique_ptr<Child>(new Child(pid, std::move(pidfd), std::move(here)));
}

Child::Child(pid_t pid, UniqueFd pidfd, UniqueFd line) : pid_(pid), pidfd_(std::move(pidfd)), line_(std::move(line)) {}

void Child::open_gate() {
  if (std::exchange(gate_told_, true)) return;
  // Fails only with EPIPE, when the child is gone already.
  (void)::send(line_.get(), &kGateByte, 1, MSG_NOSIGNAL);
}

void Child::close_gate() {
  if (std::exchange(gate_told_, true)) return;
  (void)::shutdown(line_.get(), SHUT_WR);  // likewise
}

ExecState Child::exec_state() {
  while (state_ == ExecState::kPending) {
    char bytes[PIPE_BUF + 1];
    const ssize_t got = ::recv(line_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    std::string_view word(bytes, got > 0 ? static_cast<std::size_t>(got) : 0);
    if (!at_gate_ && word.starts_with(kAtGateByte)) {
      at_gate_ = true;
      word.remove_prefix(1);
      if (word.empty()) continue;
    }
    if (auto failure = decode_failure(word)) {
      state_ = ExecState::kFailed;
      failure_ = std::move(*failure);
    } else {
      state_ = ExecState::kExecuted;
    }
  }
  return state_;
}

UniqueFd open_pidfd(pid_t pid) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

bool send_signal(int pidfd, int signal) { return ::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0; }

bool send_group_signal(int pidfd, pid_t unreaped_pid, int signal) {
  if (::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, kSignalProcessGroup) == 0) return true;
  // WARNING: before Linux 6.9 a group has no handle. Its number is safe here and only here: a child that was not
  // reaped, dead or alive, keeps it from being used again.
  if (errno == EINVAL && ::kill(-unreaped_pid, signal) == 0) return true;
  // A child that was just forked has not come to its setsid() (child_steps.cc).
  return errno == ESRCH && send_signal(pidfd, signal);
}

}  // namespace monarch
