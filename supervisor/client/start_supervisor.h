#pragma once

// start_supervisor(): puts a supervisor, under its guard, into a session of its own, and waits until it says that it is
// ready or why it is not. What passes between the two:
//
//   argv     monarch-worker keep --ready-fd N --lock-fd M [--once --force-takeover] [--tied-fd T] -- monarch supervise
//            --job-dir DIR --ready-fd N [--tied-fd T] [--accept-new]
//   files    DIR/spec.yaml   the spec as it was given, byte for byte (0600)
//            DIR/spec.dir    the absolute folder of the spec's file; relative paths in the spec start there
//            DIR/spec.from   which files and flags made the spec (cli/job/spec_origin); may be missing
//            DIR/supervisor.log   standard output and error of both (0600)
//   env      that of the shell that submitted the job, unchanged: env_pass and `launch: local` take from it
//   lock     descriptor M holds the guard's lock of the job (journal/job_lock.h) for as long as the guard lives
//   tied     descriptor T, a pipe or a socket, is each supervisor's: once its other end is closed, the job stops
//   ready    one line on descriptor N, then it is closed:  {"ready":true}  or  {"error":"…","exit_code":N}
//
// Of a job whose supervisor is elsewhere it starts who launches the hosts, `monarch launch-for`, without a guard, by
// the same rules: that has said ready when the supervisor there has.
//
// Thread: the only one of its process (it forks).

#include <optional>
#include <string>

#include "supervisor/journal/state_dir.h"
#include "transport/base/limits.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/messages/viewer.h"

namespace monarch {

inline constexpr char kSpecFile[] = "spec.yaml";
inline constexpr char kSpecDirectoryFile[] = "spec.dir";
inline constexpr char kSpecOriginFile[] = "spec.from";
inline constexpr char kSupervisorLogFile[] = "supervisor.log";
inline constexpr char kVerdictFile[] = "verdict.json";
inline constexpr char kLogDirectory[] = "logs";

struct SupervisorBinaries {
  std::string monarch;  // this program
  std::string worker;   // monarch-worker
};

// `monarch-worker` beside the resolved path of `monarch`: in the same folder, in ../libexec/monarch, or in ../worker of
// a build tree. `override_worker` (MONARCH_WORKER) wins. kNotFound names all places that were tried.
Result<SupervisorBinaries> find_binaries(const std::string& monarch, const std::string& override_worker);

// Why it did not start, and the exit code that says so.
struct StartFailure {
  int exit_code = 0;                     // 0: it started
  std::string message;                   // one line
  std::string log_tail;                  // last lines of supervisor.log; empty where the message says all
  std::optional<HostFailure> host = {};  // that could not be reached, where the supervisor should have been
};

struct StartOptions {
  Duration deadline = limits::kReadyDeadline;
  bool accept_new_host_keys = false;  // of hosts that known_hosts does not have
  bool resume = false;          // the job has begun, and its supervisor and guard are gone: what they left is kept
  bool force_takeover = false;  // by who knows that no other supervisor of it lives, whatever its directory says
  bool away = false;            // the supervisor is on another machine, which is reached first
  int tied = -1;                // at its end the job stops; copied, and not for a supervisor on another machine
  int interrupt = -1;           // readable: nobody wants it any more; it is told to end, and the exit code is 130
};
StartFailure start_supervisor(const JobDirectory& job, const SupervisorBinaries& binaries,
                              const StartOptions& options = {});

// One line of the ready pipe. Exit code 0 if it says ready; kInvalid if it says neither.
Result<StartFailure> parse_ready_line(const std::string& line);
// That line, to the descriptor, which is closed; -1: nobody waits.
void write_ready(int fd, const StartFailure& said);

}  // namespace monarch
