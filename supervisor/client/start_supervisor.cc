#include "supervisor/client/start_supervisor.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "supervisor/client/job_secrets.h"
#include "supervisor/client/link/viewer_json.h"
#include "supervisor/journal/job_lock.h"
#include "supervisor/journal/runtime_dir.h"
#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/json.h"
#include "transport/base/marks.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/signals.h"
#include "transport/process/pipe.h"
#include "transport/process/process_limits.h"
#include "transport/process/spawn.h"

namespace monarch {

namespace {

constexpr Duration kEndsAfterTerm = Duration::seconds(5);
constexpr Duration kTermAgainAfter = Duration::milliseconds(100);
constexpr std::size_t kReadyLineBytes = 64U << 10U;  // more is not a line of ours
constexpr std::size_t kLogTailBytes = 4U << 10U;
constexpr std::size_t kLogTailLines = 12;

// What the child between fork and exec needs, made before the fork.
struct Child {
  std::vector<std::string> argv;
  int log = -1;
  int null = -1;
  int ready = -1;
  int lock = -1;  // of the guard; -1: there is no guard
  int tied = -1;  // of the guard; -1: the job is tied to nobody
};

[[noreturn]] void child_failed(const Child& child, const char* what) {
  const std::string why = text(what, ": ", std::strerror(errno));
  const std::string line = to_json(Json::object({{"error", why}, {"exit_code", kExitInternal}})) + "\n";
  (void)!::write(child.ready, line.data(), line.size());  // a parent that is gone needs no answer
  ::_exit(kExitInternal);
}

[[noreturn]] void become_guard(const Child& child) {
  reset_signals_in_child();
  if (::setsid() < 0) child_failed(child, "setsid");
  if (::dup2(child.null, STDIN_FILENO) < 0 || ::dup2(child.log, STDOUT_FILENO) < 0 ||
      ::dup2(child.log, STDERR_FILENO) < 0) {
    child_failed(child, "dup2");
  }
  // What our caller left open is not the job's to hold: a lock, or the pipe of a shell that waits for its end.
  if (::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0) child_failed(child, "close_range");
  for (const int kept : {child.ready, child.lock, child.tied}) {
    if (kept >= 0 && ::fcntl(kept, F_SETFD, 0) != 0) child_failed(child, "fcntl");
  }
  std::vector<char*> argv;
  for (const std::string& word : child.argv) argv.push_back(const_cast<char*>(word.c_str()));  // execv takes no const
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  child_failed(child, argv[0]);
}

// The child replaces descriptors 0 to 2, and the guard uses 3 itself: what is needed there must lie above, even if ours
// were closed.
constexpr int kFirstFree = 4;

// The guard and each supervisor have it under the same number.
Result<UniqueFd> tied_copy(int fd) {
  if (fd < 0) return UniqueFd();
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, limits::kFirstTiedDescriptor));
  if (!copy.valid()) return errno_error(text("duplicating descriptor ", fd), errno);
  return copy;
}

Result<UniqueFd> above_taken(UniqueFd fd) {
  if (fd.get() >= kFirstFree) return fd;
  UniqueFd moved(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirstFree));
  if (!moved.valid()) return errno_error("fcntl F_DUPFD_CLOEXEC", errno);
  return moved;
}

std::string log_tail(const JobDirectory& job) {
  auto file = job.directory.open_file(kSupervisorLogFile, O_RDONLY);
  if (!file.ok()) return "";
  const off_t size = ::lseek(file->get(), 0, SEEK_END);
  const off_t from = size > static_cast<off_t>(kLogTailBytes) ? size - static_cast<off_t>(kLogTailBytes) : 0;
  std::string tail(static_cast<std::size_t>(size > 0 ? size - from : 0), '\0');
  const long got = ::pread(file->get(), tail.data(), tail.size(), from);
  tail.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  std::size_t begin = tail.size();
  for (std::size_t lines = 0; begin > 0; --begin) {
    if (tail[begin - 1] == '\n' && begin != tail.size() && ++lines == kLogTailLines) break;
  }
  return tail.substr(begin);
}

// The first line, or what there is of one at the end or the deadline.
struct ReadyLine {
  std::string line;
  bool complete = false;
  bool timed_out = false;
  bool interrupted = false;
};

ReadyLine read_ready_line(int fd, Instant until, int interrupt = -1) {
  ReadyLine ready;
  std::array<char, 4096> buffer{};
  while (ready.line.size() < kReadyLineBytes) {
    std::array<pollfd, 2> wait = {{{fd, POLLIN, 0}, {interrupt, POLLIN, 0}}};
    const Instant now = boot_now();
    const int count = now >= until ? 0 : ::poll(wait.data(), wait.size(), EventLoop::wait_milliseconds(now, until));
    if (count < 0 && errno == EINTR) continue;
    if (count > 0 && wait[0].revents == 0) {
      ready.interrupted = true;
      return ready;
    }
    if (count == 0) {
      ready.timed_out = true;
      return ready;
    }
    const long got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return ready;
    ready.line.append(buffer.data(), static_cast<std::size_t>(got));
    const std::size_t newline = ready.line.find('\n');
    if (newline == std::string::npos) continue;
    ready.line.resize(newline);
    ready.complete = true;
    return ready;
  }
  return ready;
}

struct Guard {
  pid_t pid = 0;
  UniqueFd ready;
};

Result<Guard> spawn_guard(const JobDirectory& job, const SupervisorBinaries& binaries, const StartOptions& options) {
  MONARCH_ASSIGN(UniqueFd log, job.directory.open_file(kSupervisorLogFile, O_RDWR | O_CREAT | O_APPEND));
  MONARCH_ASSIGN(log, above_taken(std::move(log)));
  UniqueFd null_device(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null_device.valid()) return errno_error("open /dev/null", errno);
  MONARCH_ASSIGN(null_device, above_taken(std::move(null_device)));
  MONARCH_ASSIGN(Pipe ready, make_pipe(PipeReader::kWaits));
  MONARCH_ASSIGN(ready.writer, above_taken(std::move(ready.writer)));

  // Taken here, so that of two who start one at the same time only one does.
  UniqueFd lock;
  if (!options.away) {
    MONARCH_ASSIGN(lock, take_guard_lock(job.directory));
    MONARCH_ASSIGN(lock, above_taken(std::move(lock)));
  }

  MONARCH_ASSIGN(const UniqueFd tied, tied_copy(options.tied));
  const std::string number = text(ready.writer.get());
  std::vector<std::string> argv = {binaries.monarch,
                                   options.away ? "launch-for" : std::string(kSuperviseArgument),
                                   std::string(kJobDirectoryArgument),
                                   job.directory.path(),
                                   "--ready-fd",
                                   number};
  if (!options.away) {
    std::vector<std::string> guard = {binaries.worker, "keep", "--ready-fd", number, "--lock-fd", text(lock.get())};
    // Of the first supervisor alone: of those after it nobody has said that no other holds the job by then.
    if (options.force_takeover) guard.insert(guard.end(), {"--once", "--force-takeover"});
    if (tied.valid()) {
      for (auto* words : {&guard, &argv}) words->insert(words->end(), {"--tied-fd", text(tied.get())});
    }
    guard.emplace_back("--");
    argv.insert(argv.begin(), guard.begin(), guard.end());
  }
  if (options.accept_new_host_keys) argv.emplace_back("--accept-new");
  const Child child{.argv = std::move(argv),
                    .log = log.get(),
                    .null = null_device.get(),
                    .ready = ready.writer.get(),
                    .lock = lock.get(),
                    .tied = tied.get()};
  const pid_t pid = ::fork();
  if (pid < 0) return fork_error(errno);
  if (pid == 0) become_guard(child);
  LockHolder guard = this_process_as_holder(wall_now());
  guard.pid = pid;
  guard.start_ticks = 0;                                           // not known here
  if (lock.valid()) (void)name_guard(lock, job.directory, guard);  // a full disk: then who is refused hears no name
  return Guard{.pid = pid, .ready = std::move(ready.reader)};
}

// Our child, not yet reaped. Whether it has ended by then, and what it guards with it. It is told again after `again`:
// it may have passed a word on to a supervisor that was dead, and have started another since.
bool end_guard(pid_t pid, Duration again, Instant until) {
  const UniqueFd guard = open_pidfd(pid);
  if (!guard.valid()) return false;
  while (true) {
    (void)send_signal(guard.get(), SIGTERM);  // it may have ended
    pollfd ended{guard.get(), POLLIN, 0};
    const Instant now = boot_now();
    const Instant look = std::min(now + again, until);
    const int count = ::poll(&ended, 1, now >= look ? 0 : EventLoop::wait_milliseconds(now, look));
    if (count > 0) return true;
    if (boot_now() >= until) return false;
  }
}

// A job begins when its supervisor is ready: of one that was killed before, nobody ever got a key.
void remove_beginnings(const JobDirectory& job) {
  remove_secrets(job.directory);
  const auto runtime = open_runtime_dir(StateEnvironment::of_this_process());
  if (!runtime.ok()) return;                                       // then no socket was made there
  (void)::unlinkat(runtime->fd(), (job.id + ".sock").c_str(), 0);  // it was made last: it is rarely there
}

bool executable(const std::string& path) {
  struct stat what {};
  return ::stat(path.c_str(), &what) == 0 && S_ISREG(what.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

Result<SupervisorBinaries> find_binaries(const std::string& monarch, const std::string& override_worker) {
  if (!override_worker.empty()) {
    if (!executable(override_worker)) {
      return Error{ErrorCode::kNotFound,
                   text("MONARCH_WORKER=", printable(override_worker), " is not an executable file")};
    }
    return SupervisorBinaries{.monarch = monarch, .worker = override_worker};
  }
  const std::string folder = monarch.substr(0, monarch.rfind('/'));
  const std::vector<std::string> places = {folder + "/monarch-worker", folder + "/../libexec/monarch/monarch-worker",
                                           folder + "/../worker/monarch-worker"};
  for (const std::string& place : places) {
    if (executable(place)) return SupervisorBinaries{.monarch = monarch, .worker = place};
  }
  return Error{ErrorCode::kNotFound, text("monarch-worker is missing; looked for ", join(places, ", "))};
}

Result<StartFailure> parse_ready_line(const std::string& line) {
  const auto parsed = parse_json(line);
  if (parsed.ok() && parsed->get_bool("ready").value_or(false)) return StartFailure{};
  const std::optional<std::string> error = parsed.ok() ? parsed->get_string("error") : std::nullopt;
  if (!error) return Error{ErrorCode::kInvalid, text("a supervisor said neither ready nor why not: ", printable(line))};
  const std::int64_t code = parsed->get_int64("exit_code").value_or(kExitInternal);
  StartFailure failure{
      .exit_code = code > 0 && code < 256 ? static_cast<int>(code) : kExitInternal, .message = *error, .log_tail = ""};
  if (const Json* host = parsed->find("host"); host != nullptr) failure.host = parse_host_failure(*host);
  return failure;
}

void write_ready(int fd, const StartFailure& said) {
  if (fd < 0) return;
  Json line = Json::object({{"ready", true}});
  if (said.exit_code != 0) line = Json::object({{"error", said.message}, {"exit_code", said.exit_code}});
  if (said.host) line.set("host", host_failure_json(*said.host));
  const std::string bytes = to_json(line) + "\n";
  (void)!::write(fd, bytes.data(), bytes.size());  // whoever waited has gone: nobody to tell
  (void)::close(fd);
}

StartFailure start_supervisor(const JobDirectory& job, const SupervisorBinaries& binaries,
                              const StartOptions& options) {
  const Instant until = boot_now() + options.deadline;
  const std::string_view what = options.away ? "who starts the supervisor elsewhere" : "the supervisor";
  const auto guard = spawn_guard(job, binaries, options);
  if (!guard.ok() && guard.error().code == ErrorCode::kBusy)
    return {.exit_code = kExitBusy, .message = guard.error().message};
  if (!guard.ok()) {
    return {
        .exit_code = kExitInternal, .message = text("starting a supervisor: ", guard.error().message), .log_tail = ""};
  }
  const ReadyLine ready = read_ready_line(guard->ready.get(), until, options.interrupt);
  if (ready.complete) {
    auto said = parse_ready_line(ready.line);
    if (said.ok()) return *said;
    return {.exit_code = kExitInternal, .message = said.error().message, .log_tail = log_tail(job)};
  }
  // A job that goes on is not ended because its supervisor is slow: a word to end would be taken for one to stop the
  // job.
  if (ready.timed_out && options.resume) {
    return {.exit_code = kExitInternal,
            .message = text(what, " of ", job.id, " has not said within ", to_text(options.deadline),
                            " that it is ready; it goes on with that"),
            .log_tail = log_tail(job)};
  }
  // It must not start the job behind the back of somebody who was told that it failed, as a guard does whose supervisor
  // was killed. A job that goes on may have another supervisor.
  const bool goes_on = options.resume && !ready.interrupted;
  // A second word to one that takes a job over would end that without its grace.
  const Duration again = options.resume ? kEndsAfterTerm : kTermAgainAfter;
  const bool ended = !goes_on && end_guard(guard->pid, again, boot_now() + kEndsAfterTerm);
  if (ended && !options.resume) remove_beginnings(job);
  if (ready.interrupted) {
    return {.exit_code = kExitInterrupted,
            .message = text("interrupted before the supervisor of ", job.id, " was ready")};
  }
  return {.exit_code = kExitInternal,
          .message = ready.timed_out ? text(what, " of ", job.id, " did not say that it is ready within ",
                                            to_text(options.deadline), " and was told to end")
                                     : text(what, " of ", job.id, " ended before it was ready"),
          .log_tail = log_tail(job)};
}

}  // namespace monarch
