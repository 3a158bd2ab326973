#include "transport/loop/signals.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>

#include "transport/base/text.h"

namespace monarch {

namespace {

bool is_ignored(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

// WARNING: a signal that is blocked is read from the descriptor even if it is ignored (signalfd(2)).
Result<std::unique_ptr<SignalFd>> SignalFd::create(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  std::vector<int> no_keys;
  for (const int number : signals) {
    // nohup(1) starts a program with HUP ignored, and a shell that ends sends it by kill(2), as anybody would.
    if (number == SIGHUP && is_ignored(number)) continue;
    // A shell's `&` starts one with these ignored, so that a key that is pressed for another command passes it by.
    if ((number == SIGINT || number == SIGQUIT) && is_ignored(number)) no_keys.push_back(number);
    sigaddset(&set, number);
  }
  if (const int error = pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0) {
    return errno_error("blocking signals", error);
  }
  UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return errno_error("signalfd", errno);
  return std::unique_ptr<SignalFd>(new SignalFd(std::move(fd), std::move(no_keys)));
}

std::optional<ReceivedSignal> SignalFd::next() {
  signalfd_siginfo info{};
  bool passes_by = true;
  while (passes_by) {
    if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
    const bool of_a_terminal = info.ssi_code == SI_KERNEL;  // a process that sends it is named instead (sigaction(2))
    const int number = static_cast<int>(info.ssi_signo);
    passes_by = of_a_terminal && std::find(no_keys_.begin(), no_keys_.end(), number) != no_keys_.end();
  }
  return ReceivedSignal{.number = static_cast<int>(info.ssi_signo),
                        .sender_pid = static_cast<int>(info.ssi_pid),
                        .sender_uid = info.ssi_uid};
}

void ignore_what_is_for_ranks() {
  static constexpr std::initializer_list<int> kOwn = {SIGTERM, SIGKILL, SIGCHLD, SIGILL,  SIGTRAP,
                                                      SIGABRT, SIGBUS,  SIGFPE,  SIGSEGV, SIGSYS,
                                                      SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT};
  for (int number = 1; number < NSIG; ++number) {
    const bool own = std::find(kOwn.begin(), kOwn.end(), number) != kOwn.end();
    if (!own) (void)::signal(number, SIG_IGN);  // glibc's two internal ones refuse
  }
}

void reset_signals_in_child() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  // SIGKILL, SIGSTOP and glibc's two internal signals refuse, which is as it should be.
  for (int number = 1; number < NSIG; ++number) (void)::sigaction(number, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
}

std::string signal_name(int number) {
  const char* abbreviation = ::sigabbrev_np(number);
  return abbreviation != nullptr ? text("SIG", abbreviation) : text("signal ", number);
}

Result<int> signal_number(std::string_view name) {
  int number = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
  if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size()) {
    if (number > 0 && number < NSIG) return number;
    return Error{ErrorCode::kInvalid, text("no signal has the number ", number)};
  }
  const std::string_view bare = name.starts_with("SIG") ? name.substr(3) : name;
  for (int candidate = 1; candidate < NSIG; ++candidate) {
    const char* abbreviation = ::sigabbrev_np(candidate);
    if (abbreviation != nullptr && bare == abbreviation) return candidate;
  }
  return Error{ErrorCode::kInvalid, text("no signal is named `", printable(name), "`")};
}

std::vector<std::string> signal_names() {
  std::vector<std::string> names;
  for (int number = 1; number < NSIG; ++number) {
    if (const char* abbreviation = ::sigabbrev_np(number)) names.emplace_back(abbreviation);
  }
  return names;
}

}  // namespace monarch
