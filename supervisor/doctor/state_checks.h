#pragma once

// The places where jobs are kept, and what earlier jobs left in them and on this machine. Changes nothing but a probe
// that it removes.
//
// Thread: any; they wait for the disk.

#include "supervisor/doctor/finding.h"
#include "supervisor/journal/state_dir.h"

namespace monarch::doctor {

Findings check_state_directory(const StateEnvironment& environment);
Findings check_runtime_directory(const StateEnvironment& environment);
// Jobs without supervisor and verdict, and processes that carry the mark of a job that is over.
Findings check_leftovers(const StateEnvironment& environment);
Findings check_sockets(const StateEnvironment& environment);

}  // namespace monarch::doctor
