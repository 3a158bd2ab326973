#include "transport/process/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>
#include <string_view>

#include "transport/base/text.h"
#include "transport/loop/signals.h"

namespace monarch {

namespace {

constexpr int kUnexecutedStatus = 127;
constexpr int kFirstPreparedDescriptor = 16;  // above every target, so that no dup2 hits one that is still needed
constexpr std::size_t kInterpreterBytes = 256;
constexpr char kGateByte = 'g';
constexpr unsigned kSignalProcessGroup = 1U << 2U;  // PIDFD_SIGNAL_PROCESS_GROUP, Linux 6.9

enum class Step : std::uint8_t { kCgroup, kDescriptors, kWorkdir, kExec, kInterpreter };

// What the child writes before it gives up: less than PIPE_BUF, so it arrives whole.
struct Record {
  Step step = Step::kExec;
  int error = 0;
  std::uint32_t candidate = 0;
  char interpreter[kInterpreterBytes] = {};
};

// Everything that the child needs, made before the fork: between fork and exec only async-signal-safe calls are made.
struct Prepared {
  pid_t parent = 0;
  std::vector<std::string> candidates;
  std::vector<char*> argv;
  std::vector<char*> envp;
  std::vector<const char*> paths;
  const char* workdir = nullptr;
  std::vector<ChildDescriptor> descriptors;  // of prepared copies
  std::vector<std::pair<unsigned, unsigned>> closed;
  UniqueFd gate;
  UniqueFd outcome;
  UniqueFd cgroup_procs;
  std::vector<UniqueFd> copies;
  mode_t umask = 022;
  std::optional<rlimit> descriptor_limit;
  OnParentDeath on_parent_death = OnParentDeath::kDie;
};

[[noreturn]] void give_up(const Prepared& prepared, Record record) {
  // Nobody is left to tell if this fails: the parent is gone.
  (void)!::write(prepared.outcome.get(), &record, sizeof record);
  ::_exit(kUnexecutedStatus);
}

// A file that exists and yet "does not exist" has an interpreter that does not (execve(2)). Names that of a script.
void read_interpreter(const char* path, Record& record) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return;
  char head[kInterpreterBytes] = {};
  const ssize_t got = ::read(fd, head, sizeof head - 1);
  (void)::close(fd);
  if (got < 3 || head[0] != '#' || head[1] != '!') return;
  std::size_t from = 2;
  while (head[from] == ' ' || head[from] == '\t') ++from;
  std::size_t to = 0;
  while (head[from] != '\0' && head[from] != ' ' && head[from] != '\t' && head[from] != '\n') {
    record.interpreter[to++] = head[from++];
  }
}

[[noreturn]] void execute(const Prepared& prepared) {
  Record record;
  record.error = ENOENT;
  for (std::uint32_t i = 0; i < prepared.paths.size(); ++i) {
    const char* path = prepared.paths[i];
    (void)::execve(path, prepared.argv.data(), prepared.envp.data());
    const int error = errno;
    if (error == ENOENT && ::access(path, F_OK) == 0) {
      record.step = Step::kInterpreter;
      record.error = error;
      record.candidate = i;
      read_interpreter(path, record);
      give_up(prepared, record);
    }
    if (error == ENOENT || error == ENOTDIR) continue;
    record.error = error;
    record.candidate = i;
    // As a shell does: one that may not be executed does not hide a later one that may.
    if (error != EACCES) break;
  }
  give_up(prepared, record);
}

void await_gate(const Prepared& prepared) {
  for (;;) {
    char byte = 0;
    const ssize_t got = ::read(prepared.gate.get(), &byte, 1);
    if (got == 1) return;
    if (got < 0 && errno == EINTR) continue;
    ::_exit(kUnexecutedStatus);
  }
}

[[noreturn]] void run_child(const Prepared& prepared) {
  (void)::setsid();  // cannot fail: a child just forked leads no group
  if (prepared.on_parent_death == OnParentDeath::kDie) (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above. Not compared with 1: a container's parent may be that.
  if (::getppid() != prepared.parent) ::_exit(kUnexecutedStatus);
  reset_signals_in_child();
  (void)::umask(prepared.umask);
  // Lowering it closes nothing, and up to the hard limit it does not fail (getrlimit(2)).
  if (prepared.descriptor_limit) (void)::setrlimit(RLIMIT_NOFILE, &*prepared.descriptor_limit);
  Record record;
  for (const ChildDescriptor& descriptor : prepared.descriptors) {
    if (::dup2(descriptor.source, descriptor.target) >= 0) continue;
    record.step = Step::kDescriptors;
    record.error = errno;
    give_up(prepared, record);
  }
  if (prepared.cgroup_procs.valid() && ::write(prepared.cgroup_procs.get(), "0", 1) != 1) {
    record.step = Step::kCgroup;
    record.error = errno;
    give_up(prepared, record);
  }
  // Closed and not only marked: a gate of another child, held open here, would never come to its end.
  for (const auto& [from, to] : prepared.closed) (void)::close_range(from, to, 0);
  await_gate(prepared);
  if (prepared.workdir != nullptr && ::chdir(prepared.workdir) != 0) {
    record.step = Step::kWorkdir;
    record.error = errno;
    give_up(prepared, record);
  }
  execute(prepared);
}

std::string_view path_variable(const std::vector<std::string>& environment) {
  for (const std::string& line : environment) {
    if (line.starts_with("PATH=")) return std::string_view(line).substr(5);
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

std::vector<std::string> candidates_of(const SpawnOptions& options) {
  if (!options.executable.empty()) return {options.executable};
  const std::string& name = options.program.front();
  if (name.find('/') != std::string::npos) return {name};
  std::vector<std::string> candidates;
  if (name.empty()) return {name};
  std::string_view path = path_variable(options.environment);
  for (;;) {
    const std::size_t colon = path.find(':');
    const std::string_view folder = path.substr(0, colon);
    candidates.push_back(folder.empty() ? name : text(folder, '/', name));  // an empty part is the working directory
    if (colon == std::string_view::npos) return candidates;
    path.remove_prefix(colon + 1);
  }
}

std::vector<char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

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

bool prepare_descriptors(const SpawnOptions& options, int gate, int outcome, Prepared& prepared) {
  int above = kFirstPreparedDescriptor;
  for (const ChildDescriptor& descriptor : options.descriptors) above = std::max(above, descriptor.target + 1);
  std::vector<int> kept;
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
  prepared.gate = copy_high(gate, above);
  prepared.outcome = copy_high(outcome, above);
  if (!prepared.gate.valid() || !prepared.outcome.valid()) return false;
  kept.push_back(prepared.gate.get());
  kept.push_back(prepared.outcome.get());
  if (options.cgroup_procs >= 0) {
    prepared.cgroup_procs = copy_high(options.cgroup_procs, above);
    if (!prepared.cgroup_procs.valid()) return false;
  }
  prepared.closed = complement(std::move(kept));
  return true;
}

StepFailure describe(const Record& record, const std::vector<std::string>& candidates, const std::string& workdir) {
  const std::string& path = record.candidate < candidates.size() ? candidates[record.candidate] : candidates.front();
  switch (record.step) {
    case Step::kCgroup: return {record.error, "join its cgroup"};
    case Step::kDescriptors: return {record.error, "set up its descriptors"};
    case Step::kWorkdir: return {record.error, text("chdir ", workdir)};
    case Step::kExec:
      if (record.error == ENOENT && candidates.size() > 1) {
        return {record.error, text("exec ", path.substr(path.rfind('/') + 1), " (not in PATH)")};
      }
      return {record.error, text("exec ", path)};
    case Step::kInterpreter: {
      const std::string interpreter(record.interpreter, ::strnlen(record.interpreter, kInterpreterBytes));
      return {record.error, text("exec ", path, " (its interpreter ", printable(interpreter),
                                 interpreter.empty() ? "is missing)" : " is missing)")};
    }
  }
  return {record.error, "start"};
}

}  // namespace

std::variant<std::unique_ptr<Child>, StepFailure> Child::fork(const SpawnOptions& options) {
  if (options.program.empty()) return StepFailure{EINVAL, "exec nothing: the program is empty"};
  std::array<int, 2> gate{};
  std::array<int, 2> outcome{};
  if (::pipe2(gate.data(), O_CLOEXEC) != 0) return StepFailure{errno, "make a gate"};
  UniqueFd gate_read(gate[0]);
  UniqueFd gate_write(gate[1]);
  if (::pipe2(outcome.data(), O_CLOEXEC) != 0) return StepFailure{errno, "make an error pipe"};
  UniqueFd outcome_read(outcome[0]);
  UniqueFd outcome_write(outcome[1]);
  if (::fcntl(outcome_read.get(), F_SETFL, O_NONBLOCK) != 0) return StepFailure{errno, "make an error pipe"};

  Prepared prepared;
  prepared.parent = ::getpid();
  prepared.candidates = candidates_of(options);
  prepared.argv = pointers_to(options.program);
  prepared.envp = pointers_to(options.environment);
  for (const std::string& candidate : prepared.candidates) prepared.paths.push_back(candidate.c_str());
  prepared.workdir = options.workdir.empty() ? nullptr : options.workdir.c_str();
  prepared.umask = options.umask;
  prepared.descriptor_limit = options.descriptor_limit;
  prepared.on_parent_death = options.on_parent_death;
  if (!prepare_descriptors(options, gate_read.get(), outcome_write.get(), prepared)) {
    return StepFailure{errno, "copy its descriptors"};
  }
  const pid_t pid = ::fork();
  if (pid < 0) return StepFailure{errno, "fork"};
  if (pid == 0) run_child(prepared);
  // Race free: only this process can reap the child, and it has not.
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) {
    const int error = errno;
    gate_write.reset();  // which ends the child
    (void)::waitpid(pid, nullptr, 0);
    return StepFailure{error, "open a pidfd"};
  }
  return std::unique_ptr<Child>(new Child(pid, std::move(pidfd), std::move(gate_write), std::move(outcome_read),
                                          std::move(prepared.candidates), options.workdir));
}

Child::Child(pid_t pid, UniqueFd pidfd, UniqueFd gate, UniqueFd outcome, std::vector<std::string> candidates,
             std::string workdir)
    : pid_(pid),
      pidfd_(std::move(pidfd)),
      gate_(std::move(gate)),
      outcome_(std::move(outcome)),
      candidates_(std::move(candidates)),
      workdir_(std::move(workdir)) {}

void Child::open_gate() {
  if (!gate_.valid()) return;
  // Fails only with EPIPE, when the child is gone already; SIGPIPE is ignored by every process of ours.
  (void)!::write(gate_.get(), &kGateByte, 1);
  gate_.reset();
}

ExecState Child::exec_state() {
  if (state_ != ExecState::kPending) return state_;
  Record record;
  const ssize_t got = ::read(outcome_.get(), &record, sizeof record);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return state_;
  if (got == static_cast<ssize_t>(sizeof record)) {
    state_ = ExecState::kFailed;
    failure_ = describe(record, candidates_, workdir_);
  } else {
    state_ = ExecState::kExecuted;
  }
  return state_;
}

bool send_signal(int pidfd, int signal) { return ::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0; }

bool send_group_signal(int pidfd, pid_t unreaped_pid, int signal) {
  if (::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, kSignalProcessGroup) == 0) return true;
  if (errno != EINVAL) return false;
  // WARNING: before Linux 6.9 a group has no handle. Its number is safe here and only here: a child that was not reaped,
  // dead or alive, keeps it from being used again.
  return ::kill(-unreaped_pid, signal) == 0;
}

}  // namespace monarch
