#include "transport/process/child_steps.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <string_view>

#include "transport/base/text.h"
#include "transport/loop/signals.h"
#include "transport/process/cgroup.h"

namespace monarch {

namespace {

constexpr char kFailureByte = 'f';
constexpr int kUnexecutedStatus = 127;
constexpr std::size_t kInterpreterBytes = 256;

struct FailureHead {
  char kind = kFailureByte;
  int error = 0;
  int exit_code = 0;
};

[[noreturn]] void give_up(const PreparedChild& prepared, const StepFailure& failure) {
  const std::string bytes = encode_failure(failure);
  // Nobody is left to tell if this fails: the parent is gone.
  (void)!::write(prepared.line.get(), bytes.data(), bytes.size());
  ::_exit(kUnexecutedStatus);
}

// A file that exists and yet "does not exist" has an interpreter that does not (execve(2)). Names that of a script.
std::string interpreter_of(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, kInterpreterBytes> head{};
  const ssize_t got = fd.valid() ? ::read(fd.get(), head.data(), head.size()) : 0;
  std::string_view line(head.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  if (!line.starts_with("#!")) return "";
  line.remove_prefix(2);
  const std::size_t from = line.find_first_not_of(" \t");
  if (from == std::string_view::npos) return "";
  line.remove_prefix(from);
  return std::string(line.substr(0, line.find_first_of(" \t\n")));
}

std::string_view path_variable(const std::vector<std::string>& environment) {
  for (const std::string& line : environment) {
    if (line.starts_with("PATH=")) return std::string_view(line).substr(5);
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

std::vector<std::string> candidates_of(const SpawnOptions& options, const std::vector<std::string>& environment) {
  if (!options.executable.empty()) return {options.executable};
  return program_candidates(options.program.front(), environment);
}

std::vector<char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void await_gate(const PreparedChild& prepared) {
  (void)!::write(prepared.line.get(), &kAtGateByte, 1);  // fails only where the parent is gone
  for (;;) {
    char byte = 0;
    const ssize_t got = ::read(prepared.line.get(), &byte, 1);
    if (got == 1) return;
    if (got < 0 && errno == EINTR) continue;
    ::_exit(kUnexecutedStatus);
  }
}

// Up to where only the gate is missing.
void detach_from_parent(const PreparedChild& prepared, bool inside) {
  const SpawnOptions& options = *prepared.options;
  (void)::setsid();  // cannot fail: a child just forked leads no group
  if (options.on_parent_death == OnParentDeath::kDie) (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above. Not compared with 1: a container's parent may be that.
  if (::getppid() != prepared.parent) ::_exit(kUnexecutedStatus);
  // Stays over the execution, and is not passed on to its children. EINVAL where there is no Yama, which forbids
  // nothing then.
  if (const auto tracer = ptracer_of(options.tracer, prepared.parent)) (void)::prctl(PR_SET_PTRACER, *tracer);
  reset_signals_in_child();
  (void)::umask(options.umask);
  // Before a descriptor is put in the place of the group's, and while one more may be opened.
  if (options.group != nullptr && !inside && !options.group->join()) give_up(prepared, {errno, "join its cgroup"});
  // Lowering it closes nothing, and up to the hard limit it does not fail (getrlimit(2)).
  if (options.descriptor_limit) (void)::setrlimit(RLIMIT_NOFILE, &*options.descriptor_limit);
  for (const ChildDescriptor& descriptor : prepared.descriptors) {
    if (::dup2(descriptor.source, descriptor.target) < 0) give_up(prepared, {errno, "set up its descriptors"});
  }
  // Closed and not only marked: a gate of another child, held open here, would never come to its end.
  for (const auto& [from, to] : prepared.closed) (void)::close_range(from, to, 0);
}

}  // namespace

std::optional<unsigned long> ptracer_of(Tracer tracer, pid_t parent) {
  switch (tracer) {
    case Tracer::kNobody: return std::nullopt;
    case Tracer::kParent: return static_cast<unsigned long>(parent);
    case Tracer::kAnybody: return PR_SET_PTRACER_ANY;
  }
  return std::nullopt;
}

std::vector<std::string> program_candidates(const std::string& name, const std::vector<std::string>& environment) {
  if (name.empty() || name.find('/') != std::string::npos) return {name};
  std::vector<std::string> candidates;
  std::string_view path = path_variable(environment);
  for (;;) {
    const std::size_t colon = path.find(':');
    const std::string_view folder = path.substr(0, colon);
    candidates.push_back(folder.empty() ? name : text(folder, '/', name));  // an empty part is the working directory
    if (colon == std::string_view::npos) return candidates;
    path.remove_prefix(colon + 1);
  }
}

StepFailure execute_one_of(const std::vector<std::string>& candidates, const std::vector<std::string>& program,
                           const std::vector<std::string>& environment) {
  const std::vector<char*> argv = pointers_to(program);
  const std::vector<char*> envp = pointers_to(environment);
  StepFailure failure{ENOENT, ""};
  for (const std::string& path : candidates) {
    (void)::execve(path.c_str(), argv.data(), envp.data());
    const int error = errno;
    if (error == ENOENT && ::access(path.c_str(), F_OK) == 0) {
      const std::string interpreter = interpreter_of(path);
      return {error, text("exec ", path, " (its interpreter ", printable(interpreter),
                          interpreter.empty() ? "is missing)" : " is missing)")};
    }
    if (error == ENOENT || error == ENOTDIR) continue;
    failure = {error, text("exec ", path)};
    // As a shell does: one that may not be executed does not hide a later one that may.
    if (error != EACCES) break;
  }
  if (!failure.detail.empty()) return failure;
  const std::string& first = candidates.front();
  if (candidates.size() == 1) return {failure.error, text("exec ", first)};
  return {failure.error, text("exec ", first.substr(first.rfind('/') + 1), " (not in PATH)")};
}

void run_child(const PreparedChild& prepared, bool inside) {
  detach_from_parent(prepared, inside);
  await_gate(prepared);
  const SpawnOptions& options = *prepared.options;
  if (!options.workdir.empty() && ::chdir(options.workdir.c_str()) != 0) {
    give_up(prepared, {errno, text("chdir ", options.workdir)});
  }
  std::vector<std::string> environment = options.environment;
  if (options.prepare) {
    if (const auto failure = options.prepare(environment)) give_up(prepared, *failure);
  }
  give_up(prepared, execute_one_of(candidates_of(options, environment), options.program, environment));
}

std::string encode_failure(const StepFailure& failure) {
  const FailureHead head{kFailureByte, failure.error, failure.exit_code};
  std::string bytes(sizeof head, '\0');
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes + failure.detail.substr(0, PIPE_BUF - sizeof head);  // so it arrives whole (pipe(7))
}

std::optional<StepFailure> decode_failure(std::string_view bytes) {
  FailureHead head;
  if (bytes.size() < sizeof head || bytes.front() != kFailureByte) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  return StepFailure{head.error, std::string(bytes.substr(sizeof head)), head.exit_code};
}

}  // namespace monarch
