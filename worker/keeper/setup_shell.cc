#include "worker/keeper/setup_shell.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <map>
#include <string_view>

#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Where bash writes what it exports: not among the numbers that scripts use by habit, or bash by itself.
constexpr int kCaptureDescriptor = 199;
constexpr std::size_t kEnvironmentBytes = 4U << 20U;  // more than execve(2) takes

// Told at its end, or where it exits. No EXIT trap is set for that: with one, bash puts off its own end by a signal,
// and may miss it while it starts a command. All names begin alike, so that they can be left out again should the setup
// export them (set -a). On the setup's first line, so that its lines keep their numbers.
constexpr std::string_view kBefore =
    "__monarch_tell() { command -p env -0 >&199; }; "
    "exit() { __monarch_code=${1-$?}; if [[ $BASHPID == \"$$\" ]]; then __monarch_tell; fi; "
    "builtin exit \"$__monarch_code\"; }; ";
constexpr std::string_view kAfter = "\nexit\n";
constexpr std::array<std::string_view, 2> kOurPrefixes = {"__monarch_", "BASH_FUNC___monarch_"};
constexpr std::array<std::string_view, 4> kShellsOwn = {"_", "SHLVL", "PWD", "OLDPWD"};

std::string_view variable_name(std::string_view line) { return line.substr(0, line.find('=')); }

bool is_shells_own(std::string_view name) {
  return std::find(kShellsOwn.begin(), kShellsOwn.end(), name) != kShellsOwn.end();
}

[[noreturn]] void become_bash(const std::string& setup, const std::vector<std::string>& environment, int capture,
                              int told, const sigset_t& mask) {
  // Its end would leave it without anybody who waits for it.
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)::sigprocmask(SIG_SETMASK, &mask, nullptr);
  StepFailure failure;
  if (::dup2(capture, kCaptureDescriptor) < 0) {
    failure.error = errno;
  } else {
    failure = execute_one_of(program_candidates("bash", environment),
                             {"setup", "-c", text(kBefore, setup, kAfter), "setup"}, environment);
  }
  (void)!::write(told, &failure.error, sizeof failure.error);  // nobody is left to tell if this fails
  ::_exit(kExitNotFound);
}

struct Outcome {
  int exec_error = 0;
  int status = 0;
};

// Nothing where it could not even be forked, with errno set.
std::optional<Outcome> run_bash(const std::string& setup, const std::vector<std::string>& environment, int capture) {
  std::array<int, 2> told{};
  if (::pipe2(told.data(), O_CLOEXEC) != 0) return std::nullopt;
  const UniqueFd told_read(told[0]);
  UniqueFd told_write(told[1]);
  sigset_t all;
  sigset_t before;
  (void)::sigfillset(&all);
  (void)::sigprocmask(SIG_SETMASK, &all, &before);
  Outcome outcome;
  const pid_t pid = ::fork();
  if (pid == 0) become_bash(setup, environment, capture, told_write.get(), before);
  const int fork_error = errno;
  told_write.reset();
  if (pid > 0) {
    if (::read(told_read.get(), &outcome.exec_error, sizeof outcome.exec_error) <= 0) outcome.exec_error = 0;
    (void)::waitpid(pid, &outcome.status, 0);  // a child of ours, and no signal interrupts: it is there
  }
  // A stop that was ordered meanwhile ends this process here.
  (void)::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid > 0) return outcome;
  errno = fork_error;
  return std::nullopt;
}

// Nothing where it does not fit, or cannot be read.
std::optional<std::string> read_all(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || static_cast<std::size_t>(status.st_size) > kEnvironmentBytes) return std::nullopt;
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::pread(fd, bytes.data() + have, bytes.size() - have, static_cast<off_t>(have));
    if (got <= 0) return std::nullopt;
    have += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace

std::vector<std::string> exported_lines(std::string_view captured, const std::vector<std::string>& before) {
  std::vector<std::string> lines;
  for (const std::string& line : before) {
    if (is_shells_own(variable_name(line))) lines.push_back(line);
  }
  while (!captured.empty()) {
    const std::size_t end = captured.find('\0');
    const std::string_view line = captured.substr(0, end);
    captured.remove_prefix(end == std::string_view::npos ? captured.size() : end + 1);
    const bool ours = std::any_of(kOurPrefixes.begin(), kOurPrefixes.end(),
                                  [line](std::string_view prefix) { return line.starts_with(prefix); });
    if (!ours && !is_shells_own(variable_name(line)) && line.find('=') != std::string_view::npos)
      lines.emplace_back(line);
  }
  return lines;
}

std::variant<std::vector<std::string>, StepFailure> run_setup(const std::string& setup,
                                                              const std::vector<std::string>& environment) {
  const UniqueFd capture(::memfd_create("monarch-setup-environment", MFD_CLOEXEC));
  if (!capture.valid()) return StepFailure{errno, "make room for what `setup` exports"};
  const auto outcome = run_bash(setup, environment, capture.get());
  if (!outcome) return StepFailure{errno, "fork for `setup`"};
  if (outcome->exec_error != 0) return StepFailure{outcome->exec_error, "exec bash, which `setup` needs"};
  if (WIFSIGNALED(outcome->status)) {
    return StepFailure{0, "`setup`", kExitSignalBase + WTERMSIG(outcome->status)};
  }
  if (const int code = WEXITSTATUS(outcome->status); code != 0) return StepFailure{0, "`setup`", code};
  const auto captured = read_all(capture.get());
  if (!captured) return StepFailure{E2BIG, "read the environment that `setup` left"};
  // It cannot be empty: MONARCH_JOB_UUID is in it.
  if (captured->empty()) {
    return StepFailure{ENODATA,
                       "read the environment that `setup` left (it replaced its shell, or made `exit` something else)"};
  }
  return exported_lines(*captured, environment);
}

}  // namespace monarch
