#pragma once

// resume_job(): `monarch up --resume JOB`: a new supervisor, under a new guard, for a job that has lost both. What
// still runs of it is taken over as it is.
//
// Thread: the program's only one.

#include <string>
#include <vector>

#include "cli/args/command.h"

namespace monarch {

// --resume and --force-takeover
std::vector<Flag> resume_flags();
// The command's exit code.
int resume_job(const Arguments& arguments, Context& context);

}  // namespace monarch
