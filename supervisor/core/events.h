#pragma once

// What the job's core is told. Each is journalled with its `now` before it is acted on, so that a replay of them is the job's
// state. Beats and ticks are not among them: what a beat says is compared with what is known, and only the difference comes here.
//
// The types of JobEvent that the core emits, for people and programs:
//   job.starting job.running job.expiring job.stopping job.ended   host.ready host.failed host.replaced host.suspect host.heard
//   host.lost host.wedged
//   gang.starting gang.running gang.ready gang.done gang.failed gang.stopped   supervisor.returned
// Its driver adds some that have no number and are in no journal: journal.stuck journal.mended guard.lost
//
// Thread: values.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/core/launch_failure.h"
#include "transport/base/control_messages.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/base/viewer_messages.h"

namespace monarch {

// The first term begins.
struct JobBegun {
  Term term;
  JobUuid job;
};

// A later term begins: the supervisor of the one before it ended without a verdict.
struct SupervisorReturned {
  Term term;
};

// The launcher: the worker on this host runs and has told its key.
struct WorkerLaunched {
  HostId host;
  BootstrapReply reply;
  std::string control_endpoint;  // where it was told to call back
  std::string again;             // a command that tries by hand whether it can; may be empty
};

// The launcher: this host does not start. It has tried what is worth a try.
struct WorkerLaunchFailed {
  HostId host;
  LaunchFailure failure;
};

// The worker's first hello.
struct WorkerJoined {
  HostId host;
  std::uint64_t incarnation = 0;
};

// The launcher, exactly once for each worker it launched.
struct WorkerEnded {
  HostId host;
  std::string how;  // "exit code 0", "killed by SIGKILL"
  bool orderly = false;
};

// Nothing was heard of this host for supervision.lost_after.
struct HostSilent {
  HostId host;
  Duration silence;
};

// For people alone: a host is suspected, or was heard again. Nothing follows from it.
struct HostDoubted {
  HostId host;
  bool heard_again = false;
  Duration silence;
};

// For people alone: nobody has used the job, and in `left` it is stopped by lifetime.idle. Nothing follows from it.
struct IdleNoted {
  Duration left;
};

struct PortsReserved {
  HostId host;
  Reserved reserved;
};

// A report that differs from the last one in phase, end or completeness of output.
struct RankChanged {
  HostId host;
  RankReport report;
  Instant ended_at;      // on the supervisor's clock; meaningful once report.end.kind is set
  Duration uncertainty;  // of ended_at, to either side
};

struct StopOrdered {
  StopRequest request;
};

// next_deadline() has passed.
struct DeadlinePassed {};

using CoreEvent =
    std::variant<JobBegun, SupervisorReturned, WorkerLaunched, WorkerLaunchFailed, WorkerJoined, WorkerEnded,
                 HostSilent, PortsReserved, RankChanged, StopOrdered, DeadlinePassed, HostDoubted, IdleNoted>;

}  // namespace monarch
