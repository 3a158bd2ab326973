#pragma once

// Whether the allocation that a job is to begin in is there: the variables of one outlive it in a shell, and its number
// may be another job's by now.
//
// Thread: that of its process, and the only one (it forks).

#include <optional>
#include <string>

#include "supervisor/core/spec/launch_spec.h"
#include "supervisor/launch/slurm/submission.h"

namespace monarch {

// Why no job can begin there, by what Slurm says of that number; nothing: it can.
std::optional<std::string> objection_to(const Allocation& allocation, const QueuedJob& found);

// Asks Slurm. Nothing also where it does not answer: what begins there says then what it lacks.
std::optional<std::string> ask_of_allocation(const Allocation& allocation);

}  // namespace monarch
