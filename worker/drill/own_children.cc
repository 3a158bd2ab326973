#include "worker/drill/own_children.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "transport/base/text.h"
#include "transport/process/process_scan.h"
#include "transport/process/spawn.h"

namespace monarch {

namespace {

[[noreturn]] void begin_work(int gate, pid_t parent, const std::function<void()>& work) {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)::prctl(PR_SET_NAME, "monarch-drill");
  (void)::setsid();  // in a scheduling group of its own, as those of another user would be
  char word = 0;
  if (::getppid() != parent || ::read(gate, &word, 1) != 0) ::_exit(0);
  work();
  ::_exit(0);
}

}  // namespace

Status OwnChildren::start(std::uint32_t count, const std::function<void()>& work) {
  // They begin with the end of this pipe, or end with a byte of it: whom nobody could signal is not to begin.
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("pipe2", errno);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t self = ::getpid();
  int error = 0;
  for (std::uint32_t i = 0; i < count && error == 0; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      write_end.reset();
      begin_work(read_end.get(), self, work);
    }
    if (child < 0) {
      error = errno;
      break;
    }
    const auto entry = read_process(child);
    children_.emplace_back(child, entry ? open_process(*entry) : UniqueFd());
    if (!children_.back().second.valid()) error = EMFILE;
  }
  if (error == 0) return {};
  for (std::size_t i = 0; i < children_.size(); ++i) (void)!::write(write_end.get(), "x", 1);  // a pipe holds that many
  for (const auto& [child, pidfd] : children_) (void)::waitpid(child, nullptr, 0);
  children_.clear();
  return errno_error(text("starting ", counted(count, "process", "processes")), error);
}

void OwnChildren::end() {
  for (const auto& [child, pidfd] : children_) (void)send_signal(pidfd.get(), SIGKILL);  // it may have ended
  for (const auto& [child, pidfd] : children_) (void)::waitpid(child, nullptr, 0);
  children_.clear();
}

std::vector<pid_t> OwnChildren::pids() const {
  std::vector<pid_t> pids;
  for (const auto& [child, pidfd] : children_) pids.push_back(child);
  return pids;
}

bool OwnChildren::all_live() const {
  return std::all_of(children_.begin(), children_.end(), [](const auto& child) {
    pollfd ended{child.second.get(), POLLIN, 0};
    return ::poll(&ended, 1, 0) == 0;
  });
}

void spin() {
  for (volatile std::uint64_t spins = 0;;) spins = spins + 1;
}

}  // namespace monarch
