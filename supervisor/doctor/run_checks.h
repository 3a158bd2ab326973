#pragma once

// run_checks(): all checks at once, each in a child of its own under one deadline, in which time that this process was
// late does not count. A check that hangs (a dead file system, a device that does not answer) is killed and reported,
// and keeps nobody waiting: a process that not even KILL ends is left to init.
//
// Thread: the only one of its process (it forks).

#include <vector>

#include "supervisor/doctor/finding.h"
#include "transport/base/time.h"

namespace monarch::doctor {

// In the order of the checks.
Findings run_checks(const std::vector<Check>& checks, Duration deadline);

}  // namespace monarch::doctor
