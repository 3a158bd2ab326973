#include "transport/process/run_program.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/process/pipe.h"
#include "transport/process/spawn.h"

extern char** environ;

namespace monarch {

namespace {

bool is_one_of(std::string_view name, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [name](const std::string& one) {
    return one.ends_with('*') ? name.starts_with(std::string_view(one).substr(0, one.size() - 1)) : name == one;
  });
}

std::vector<std::string> own_environment(const std::vector<std::string>& without) {
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string_view variable(*line);
    if (!is_one_of(variable.substr(0, variable.find('=')), without)) lines.emplace_back(variable);
  }
  return lines;
}

// Of a program that is to be waited for; killed where it goes before that.
class Running {
 public:
  explicit Running(std::unique_ptr<Child> child) : child_(std::move(child)) {}
  ~Running() {
    if (ended_) return;
    (void)send_signal(child_->pidfd(), SIGKILL);  // one that has ended needs none
    (void)wait();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  // Its exit code, or minus the signal.
  int wait() {
    siginfo_t info{};
    while (::waitid(P_PIDFD, static_cast<id_t>(child_->pidfd()), &info, WEXITED) != 0 && errno == EINTR) continue;
    ended_ = true;
    return info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
  }
  Child& child() { return *child_; }

 private:
  std::unique_ptr<Child> child_;
  bool ended_ = false;
};

// False at its end.
bool take(const UniqueFd& from, std::string& into) {
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t got = ::read(from.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    into.append(piece.data(), static_cast<std::size_t>(got));
  }
}

std::string last_line(std::string_view words) {
  while (!words.empty() && words.back() == '\n') words.remove_suffix(1);
  const std::size_t newline = words.rfind('\n');
  return std::string(newline == std::string_view::npos ? words : words.substr(newline + 1));
}

}  // namespace

Result<std::string> run_program(const std::vector<std::string>& words, const RunProgramOptions& options) {
  MONARCH_ASSIGN(Pipe out, make_pipe(PipeReader::kDoesNotWait));
  MONARCH_ASSIGN(Pipe err, make_pipe(PipeReader::kDoesNotWait));
  auto forked = Child::fork({.program = words,
                             .environment = own_environment(options.without),
                             .descriptors = {{.source = out.writer.get(), .target = STDOUT_FILENO},
                                             {.source = err.writer.get(), .target = STDERR_FILENO}}});
  if (const auto* failed = std::get_if<StepFailure>(&forked)) return errno_error(failed->detail, failed->error);
  Running running(std::move(std::get<std::unique_ptr<Child>>(forked)));
  running.child().open_gate();
  out.writer.reset();
  err.writer.reset();
  const Instant until = boot_now() + options.deadline;
  std::string said;
  std::string complaint;
  while (out.reader.valid() || err.reader.valid()) {
    std::array<pollfd, 3> wait = {
        {{out.reader.get(), POLLIN, 0}, {err.reader.get(), POLLIN, 0}, {options.interrupt, POLLIN, 0}}};
    const Instant now = boot_now();
    const int ready = now >= until ? 0 : ::poll(wait.data(), wait.size(), EventLoop::wait_milliseconds(now, until));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      return Error{ErrorCode::kTimeout, text(words[0], " did not answer within ", to_text(options.deadline))};
    }
    if (wait[2].revents != 0) return Error{ErrorCode::kGone, text(words[0], " was interrupted")};
    if (wait[0].revents != 0 && !take(out.reader, said)) out.reader.reset();
    if (wait[1].revents != 0 && !take(err.reader, complaint)) err.reader.reset();
    if (said.size() > options.bytes || complaint.size() > options.bytes) {
      return Error{ErrorCode::kInvalid, text(words[0], " says more than ", options.bytes, " bytes")};
    }
  }
  const int ended = running.wait();
  if (running.child().exec_state() == ExecState::kFailed) {
    const StepFailure& failure = running.child().failure();
    return errno_error(failure.error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInternal, failure.detail,
                       failure.error);
  }
  if (ended == 0) return said;
  const std::string why = last_line(complaint.empty() ? said : complaint);
  return Error{ErrorCode::kUnsupported,
               why.empty()
                   ? text(words[0], ended < 0 ? " was ended by signal " : " ended with ", ended < 0 ? -ended : ended)
                   : printable(why)};
}

}  // namespace monarch
