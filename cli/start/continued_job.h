#pragma once

// Jobs that go on as another one: what a new job goes on from, and the one that a command follows next.
//
// Thread: the only one of its process (it forks).

#include <memory>
#include <optional>
#include <string>

#include "cli/args/command.h"
#include "cli/follow/viewer_session.h"
#include "cli/job/spec_input.h"
#include "supervisor/client/job_view.h"
#include "transport/base/result.h"

namespace monarch {

// In a script that Slurm runs again (SLURM_RESTART_COUNT), of a spec that says so (on_preempt: requeue): the job that
// goes on from the one of the run before. Where nobody has made it, it is made here: Slurm has killed all of the run
// before. Nothing: there is none, or it ended well, and a new job begins. An error where that cannot be read.
Result<std::optional<std::string>> requeued_job(const SpecInput& input, const Context& context);

// The job of `--continue JOB`, which has ended. Nothing: stderr says why not.
std::optional<std::string> continued_job(const std::string& written, const Context& context);

// Of a job that has ended, and was followed: the one that goes on from it, which stderr names. Nothing: there is none,
// or this shell is in the allocation that ends.
std::unique_ptr<JobView> next_job(const JobView& view, const SessionEnd& end, const Context& context);

}  // namespace monarch
