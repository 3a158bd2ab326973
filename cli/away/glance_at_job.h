#pragma once

// What can be said of a job of this machine in one line, for who has the job's pointer on another.
//
// Thread: the command's; it reads the job's files and asks its supervisor.

#include <string>

#include "supervisor/client/job_glance.h"

namespace monarch {

// Nothing is known of a job that is not there, or cannot be read.
JobGlance glance_at_job(const std::string& id);

}  // namespace monarch
