#pragma once

// From a checked spec to a running supervisor: the job's folder, its files, the guard; or the reason why there is none.
//
// Thread: the only one of its process (it forks).

#include <memory>
#include <optional>

#include "cli/args/command.h"
#include "cli/follow/viewer_session.h"
#include "cli/job/spec_input.h"
#include "supervisor/client/job_view.h"
#include "transport/loop/signals.h"

namespace monarch {

struct LaunchedJob {
  std::unique_ptr<JobView> view;  // nothing: stderr says why, and the command exits with `exit_code`
  // Of the job's owner, from before its supervisor started: a Ctrl-C meanwhile must stop the job, and not only us.
  std::unique_ptr<SignalFd> signals = {};
  int exit_code = 0;
  // The job was made and its supervisor did not start: what it left.
  std::unique_ptr<JobView> ended = {};
  SessionEnd end = {};
};

std::vector<Flag> launch_flags();
Flag continue_flag();  // of who starts a job

// On another machine, now or once Slurm has started it.
bool is_supervised_elsewhere(const JobSpec& spec);

// Says the notes of the input first. `tied`: the descriptor at whose end the job is to stop.
LaunchedJob launch_job(const SpecInput& input, const Arguments& arguments, const Context& context,
                       std::optional<int> tied = {});

}  // namespace monarch
