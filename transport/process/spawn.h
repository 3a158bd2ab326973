#pragma once

// Child: a process that was forked but stands at its gate until it is told to execute its program. Every child has its
// own session and group, inherits no signal disposition and only the descriptors that were named, and dies with the
// thread that forked it (PDEATHSIG) unless it is told to live.
//
// fork and never vfork or posix_spawn: those suspend the parent until the child executes, and a child may hang on a
// dead file system for ever.
//
// Thread: one, which must be the process's main thread and its only one. WARNING: PDEATHSIG fires when the forking
// *thread* ends (prctl(2)). Lifetime: destroying a Child does not end the process; at a closed gate it ends by itself.

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

class CgroupFolder;

struct ChildDescriptor {
  int source = -1;  // here
  int target = -1;  // there
};

enum class OnParentDeath : std::uint8_t { kDie, kLive };

// A step between fork and the new program failed.
struct StepFailure {
  int error = 0;       // errno
  std::string detail;  // the step and its object: "chdir /data"
  int exit_code = 0;   // not zero: of a program that prepares for this one, and that failed; `error` says nothing then
};
StepFailure step_failure(const Error& error);

// Whom it lets trace it also where Yama's scope is 1 (PR_SET_PTRACER, prctl(2)).
enum class Tracer : std::uint8_t {
  kNobody,   // but whom the kernel lets without that
  kParent,   // this process, and what that starts
  kAnybody,  // of its user
};

// What prctl(2) is told for that; nothing: it is not called.
std::optional<unsigned long> ptracer_of(Tracer tracer, pid_t parent);

struct SpawnOptions {
  std::vector<std::string> program;      // argv; [0] is searched for in the PATH of `environment` unless it has a slash
  std::vector<std::string> environment;  // NAME=value, all of it
  std::string executable;                // executed instead of a search for argv[0], if not empty
  std::string workdir;                   // empty: this process's own
  std::vector<ChildDescriptor> descriptors;  // of 0, 1 and 2 the missing ones are /dev/null
  std::vector<int> kept;                     // stay open under their numbers until the program is executed; above 2
  const CgroupFolder* group = nullptr;       // to be in, or null: this process's own
  mode_t umask = 022;
  std::optional<rlimit> descriptor_limit;  // RLIMIT_NOFILE, where it is not to be this process's own
  OnParentDeath on_parent_death = OnParentDeath::kDie;
  Tracer tracer = Tracer::kNobody;
  // The last step in the child, past its gate and in its working directory. It may take its time, and change the
  // environment with which the program is searched for and executed.
  std::function<std::optional<StepFailure>(std::vector<std::string>& environment)> prepare;
};

enum class ExecState : std::uint8_t { kPending, kExecuted, kFailed };

class Child {
 public:
  static std::variant<std::unique_ptr<Child>, StepFailure> fork(const SpawnOptions& options);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }
  UniqueFd take_pidfd() { return std::move(pidfd_); }

  void open_gate();
  // Without it the child exits unexecuted.
  void close_gate();

  // Readable when the child stands at its gate, has executed, failed or died; exec_state() then says which of the first
  // three (one that died before it executed counts as kExecuted: its exit tells).
  int exec_descriptor() const { return line_.get(); }
  ExecState exec_state();
  // As of the last exec_state(): it has nothing open any more but what it was given.
  bool at_gate() const { return at_gate_; }
  const StepFailure& failure() const { return failure_; }
  // Gives exec_descriptor() back, once exec_state() is no longer pending.
  void close_exec_descriptor() { line_.reset(); }

 private:
  Child(pid_t pid, UniqueFd pidfd, UniqueFd line);

  pid_t pid_;
  UniqueFd pidfd_;
  UniqueFd line_;  // to it, until it has executed
  bool gate_told_ = false;
  bool at_gate_ = false;
  ExecState state_ = ExecState::kPending;
  StepFailure failure_;
};

// Where a program of this name may be, in the order of the PATH among `environment`.
std::vector<std::string> program_candidates(const std::string& name, const std::vector<std::string>& environment);
// Executes the first of them that can be; comes back only where none can. For a child.
StepFailure execute_one_of(const std::vector<std::string>& candidates, const std::vector<std::string>& program,
                           const std::vector<std::string>& environment);

// A handle of a process whose number is nobody else's: a child that was not reaped, or one that is looked at once more
// after this. Not valid: it has ended, or there is no descriptor left.
UniqueFd open_pidfd(pid_t pid);
// The signal goes to the process that the descriptor is of, never to a number. False if it has ended.
bool send_signal(int pidfd, int signal);
// To the process group that the process leads; to itself while it leads none yet.
bool send_group_signal(int pidfd, pid_t unreaped_pid, int signal);

}  // namespace monarch
