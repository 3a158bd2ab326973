#include "transport/process/forked_work.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <limits>

#include "transport/base/clock.h"
#include "transport/process/spawn.h"

namespace monarch {

namespace {

constexpr std::size_t kReadBytes = 16'384;

void close_all_but(int kept) {
  const auto number = static_cast<unsigned>(kept);
  for (unsigned fd = 0; fd < number; ++fd) {
    if (fd != STDERR_FILENO) (void)::close(static_cast<int>(fd));  // not every number is open
  }
  (void)::syscall(SYS_close_range, number + 1, std::numeric_limits<unsigned>::max(), 0U);  // cannot fail for this range
}

[[noreturn]] void run(int kept, pid_t parent, const std::function<void()>& work) {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);  // cannot fail for a signal
  if (::getppid() != parent) ::_exit(1);     // it died before that
  close_all_but(kept);
  work();
  ::_exit(0);
}

// False once there is no more.
bool read_some(int fd, std::string& bytes) {
  char buffer[kReadBytes];
  const ssize_t got = ::read(fd, buffer, sizeof buffer);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) return false;
  bytes.append(buffer, static_cast<std::size_t>(got));
  return true;
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote <= 0) return;  // nobody waits for it any more
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

}  // namespace

Result<ForkedWork> ForkedWork::start(int kept, const std::function<void()>& work) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("fork", errno);
  if (pid == 0) run(kept, parent, work);
  return ForkedWork(pid, open_pidfd(pid));
}

// One that not even KILL ends, in the middle of a call to a dead disk, is left to init.
ForkedWork::~ForkedWork() {
  if (!pidfd_.valid()) return;
  (void)send_signal(pidfd_.get(), SIGKILL);  // it may have ended
  pollfd ended{pidfd_.get(), POLLIN, 0};
  constexpr int kPatienceMs = 200;
  if (::poll(&ended, 1, kPatienceMs) == 1) (void)::waitpid(pid_, nullptr, 0);
}

std::optional<std::string> answer_within(Duration deadline, std::size_t limit,
                                         const std::function<std::string()>& work) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return std::nullopt;
  const UniqueFd read_end(fds[0]);
  UniqueFd write_end(fds[1]);
  const auto child = ForkedWork::start(write_end.get(), [&] { write_all(write_end.get(), work()); });
  if (!child.ok()) return std::nullopt;
  write_end.reset();
  const Instant until = boot_now() + deadline;
  std::string bytes;
  for (;;) {
    const Duration left = until - boot_now();
    pollfd answer{read_end.get(), POLLIN, 0};
    if (left <= Duration::zero()) return std::nullopt;
    if (::poll(&answer, 1, static_cast<int>(left.count_milliseconds()) + 1) != 1) continue;
    if (!read_some(read_end.get(), bytes)) break;
    if (bytes.size() > limit) return std::nullopt;
  }
  if (bytes.empty()) return std::nullopt;
  return bytes;
}

}  // namespace monarch
