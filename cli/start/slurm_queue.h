#pragma once

// The time that a job of ours spends in Slurm's queue: what follows the job waits there with it, takes it out, and says
// how it is.
//
// Thread: the only one of its process (it forks).

#include <optional>
#include <string>
#include <string_view>

#include "cli/args/command.h"
#include "cli/follow/viewer_session.h"
#include "cli/job/job_argument.h"
#include "supervisor/client/job_view.h"
#include "transport/base/time.h"

namespace monarch {

// Of a command that follows a job.
struct QueueWait {
  ViewerKind kind = ViewerKind::kWatcher;
  std::string viewer;                        // "run", for who took it out of the queue
  std::optional<Duration> leave_after = {};  // nothing: as long as it takes
  bool quiet = false;                        // says nothing while it waits
};
struct QueueOutcome {
  // Nothing: the job has a supervisor, or never was in Slurm's queue. Else how it ended without one, or that nobody
  // wants to wait any more.
  std::optional<SessionEnd> end;
  // Asked for as the job began: the supervisor is to be told.
  std::optional<StopRequest> stop;
};
QueueOutcome wait_in_queue(const JobView& view, const Context& context, SignalFd& signals, const QueueWait& wait);

// As take_job(), for a watcher that goes on with the job once it has a supervisor.
JobArgument take_begun_job(const std::string& written, const Context& context, const std::string& viewer);

// Takes a job out of Slurm's queue, which waits until it is, and leaves that verdict.
struct Withdrawal {
  std::optional<Verdict> verdict;  // nothing: it has a supervisor by then, or nobody knows
  bool unknown = false;            // Slurm did not answer, or somebody interrupted us
};
Withdrawal withdraw_from_queue(const JobView& view, const Verdict& verdict, const Context& context,
                               SignalFd* signals = nullptr);
// Of somebody who stopped it: "monarch stop, pid 7".
Verdict stopped_in_queue(const std::string& who);

// What Slurm says of a job in its queue, in words; nothing: it is not in the queue. One that is over by now has ended
// for us too, after this.
std::optional<std::string> queue_words(const JobView& view);

// Of a job that Slurm was given and that has no journal.
struct NotBegun {
  std::string_view phase;  // "queued", "ended" or "starting"
  std::string words;       // what Slurm says of it, or how it ended
};
NotBegun how_it_waits(const JobView& view);

}  // namespace monarch
