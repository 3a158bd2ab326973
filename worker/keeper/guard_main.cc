#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "transport/base/exit_code.h"
#include "transport/base/limits.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/process/hidden_memory.h"
#include "worker/keeper/keeper.h"
#include "worker/keeper/keeper_main.h"

extern char** environ;

namespace monarch {

namespace {

constexpr std::string_view kUsage =
    "usage: monarch-worker keep [--ready-fd N] [--lock-fd N] [--tied-fd N] [--restarts N] [--window SECONDS] "
    "[--once WORD] -- COMMAND…\n";

struct GuardArguments {
  std::optional<int> ready_fd;
  // Open for as long as the guard lives, and nobody else's: see supervisor/journal/job_lock.h.
  std::optional<int> lock_fd;
  // Of every start, under this number: what somebody else's end is told by.
  std::optional<int> tied_fd;
  GuardedOptions guarded{.ping_deadline = limits::kSupervisorPingDeadline, .final_codes = {kExitJournal, kExitBusy}};
  std::vector<std::string> once;  // words behind the command, at its first start
  std::vector<std::string> command;
};

std::optional<int> number_from(std::string_view text) {
  int number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

Result<GuardArguments> parse_guard_arguments(const std::vector<std::string>& arguments) {
  GuardArguments parsed;
  std::size_t i = 0;
  for (; i < arguments.size() && arguments[i] != "--"; i += 2) {
    const std::string& flag = arguments[i];
    if (flag == "--once" && i + 1 < arguments.size()) {
      parsed.once.push_back(arguments[i + 1]);
      continue;
    }
    const auto value = i + 1 < arguments.size() ? number_from(arguments[i + 1]) : std::nullopt;
    if (!value) return Error{ErrorCode::kInvalid, text("`", flag, "` needs a number")};
    if (flag == "--tied-fd") {
      if (*value < limits::kFirstTiedDescriptor) {
        return Error{ErrorCode::kInvalid, text(flag, " must be ", limits::kFirstTiedDescriptor, " or above")};
      }
      parsed.tied_fd = *value;
    } else if (flag == "--ready-fd" || flag == "--lock-fd") {
      if (*value <= kGuardedChannelDescriptor) {
        return Error{ErrorCode::kInvalid, text(flag, " must be above 3, which is the channel to the keeper")};
      }
      (flag == "--ready-fd" ? parsed.ready_fd : parsed.lock_fd) = *value;
    } else if (flag == "--restarts") {
      parsed.guarded.restarts = static_cast<std::uint32_t>(*value);
    } else if (flag == "--window") {
      parsed.guarded.window = Duration::seconds(*value);
    } else {
      return Error{ErrorCode::kInvalid, text("there is no option `", flag, "`")};
    }
  }
  if (i + 1 >= arguments.size()) return Error{ErrorCode::kInvalid, "no command was given after `--`"};
  parsed.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
  return parsed;
}

int fail(const Error& error, int code) {
  const std::string message = text("monarch-worker keep: ", error.message, '\n', code == kExitUsage ? kUsage : "");
  (void)!::write(STDERR_FILENO, message.data(), message.size());  // there is nowhere else to say it
  return code;
}

}  // namespace

int guard_main(const std::vector<std::string>& arguments) {
  hide_memory();  // its environment is that of the submitting shell
  auto parsed = parse_guard_arguments(arguments);
  if (!parsed) return fail(parsed.error(), kExitUsage);
  log_start({.name = "guard"});
  (void)::setsid();  // fails where it leads a session already, which is what is wanted
  KeeperSetup setup;
  setup.options = {.kind = KeeperKind::kGuard, .guarded = parsed.value().guarded};
  setup.environment = environment_from(environ);
  setup.umask = ::umask(022);
  (void)::umask(setup.umask);  // there is no other way to learn it
  setup.guarded.program = std::move(parsed.value().command);
  setup.guarded.first_words = std::move(parsed.value().once);
  Environment supervisor = spawned_environment(setup.environment, {});
  // It finds its libraries as the command did that started it, and knows the job's key: nobody's code comes in with
  // them.
  for (const char* name : {"LD_PRELOAD", "LD_AUDIT"}) supervisor.erase(name);
  setup.guarded.environment = environment_lines(supervisor);
  setup.guarded.umask = setup.umask;
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) setup.guarded.descriptors.push_back({fd, fd});
  }
  if (const auto ready = parsed.value().ready_fd) {
    if (::fcntl(*ready, F_SETFD, FD_CLOEXEC) != 0) {
      return fail(errno_error(text("--ready-fd ", *ready), errno), kExitUsage);
    }
    setup.guarded.first_start.emplace_back(UniqueFd(*ready), *ready);
  }
  if (const auto tied = parsed.value().tied_fd) {
    if (::fcntl(*tied, F_SETFD, FD_CLOEXEC) != 0) {
      return fail(errno_error(text("--tied-fd ", *tied), errno), kExitUsage);
    }
    setup.guarded.descriptors.push_back({*tied, *tied});
  }
  if (const auto lock = parsed.value().lock_fd; lock && ::fcntl(*lock, F_SETFD, FD_CLOEXEC) != 0) {
    return fail(errno_error(text("--lock-fd ", *lock), errno), kExitUsage);
  }
  auto keeper = Keeper::create(std::move(setup));
  if (!keeper) return fail(keeper.error(), kExitInternal);
  return keeper.value()->run();
}

}  // namespace monarch
