#pragma once

// What the job's core wants done. Each may be done twice without harm: messages carry rank and generation, and the
// beats say what was lost. Their outcome comes back as an event.
//
// Thread: values.

#include <string>
#include <variant>

#include "transport/base/ids.h"
#include "transport/messages/rank.h"
#include "transport/messages/viewer.h"
#include "transport/messages/worker.h"

namespace monarch {

struct LaunchWorker {
  HostId host;
};

struct SendReserve {
  HostId host;
  Reserve message;
};

struct SendStart {
  HostId host;
  Start message;
};

struct SendStop {
  HostId host;
  Stop message;
};

// Best effort: a lost one is not said again.
struct SendTell {
  HostId host;
  Tell message;
};

// Best effort, too.
struct SendSignal {
  HostId host;
  Signal message;
};

struct SendCommitAnswer {
  HostId host;
  CommitAnswer message;
};

struct SendShutdown {
  HostId host;
  Shutdown message;
};

// End the worker and all that is below it, whatever it is doing; its end comes as WorkerEnded.
struct DestroyWorker {
  HostId host;
};

struct EmitEvent {
  JobEvent event;  // time is the driver's to fill in
};

// The job has ended. The driver adds the times and the last lines of stderr.
struct FinishJob {
  Verdict verdict;
};

using Action = std::variant<LaunchWorker, SendReserve, SendStart, SendStop, SendTell, SendShutdown, DestroyWorker,
                            EmitEvent, FinishJob, SendSignal, SendCommitAnswer>;

}  // namespace monarch
