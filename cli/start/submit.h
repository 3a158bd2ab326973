#pragma once

// Jobs that Slurm starts, where a command is given a spec for Slurm outside of any allocation: the job's folder is made
// here, sbatch gets a script (supervisor/launch/slurm/submission.h), and what follows the job waits with it
// (cli/start/slurm_queue.h). On the first node of its allocation the script finds that folder, which machines of a
// cluster share, and goes on with it.
//
// Thread: the only one of its process (it forks).

#include <optional>
#include <string>

#include "cli/args/command.h"
#include "cli/job/job_argument.h"
#include "cli/job/spec_input.h"
#include "cli/start/launch.h"

namespace monarch {

// sbatch's script, to stdout. The exit code.
int print_submission(const SpecInput& input, const Context& context);

// The job's folder, and the job in Slurm's queue. `before`: that it goes on from.
LaunchedJob submit_job(const SpecInput& input, const std::optional<std::string>& before, const Context& context);

// The same job with the spec that it has by now: which nodes it runs on it knew only then. Nothing: stderr says why
// not.
std::optional<JobSpec> begun_spec(const JobView& view, const Context& context);

}  // namespace monarch
