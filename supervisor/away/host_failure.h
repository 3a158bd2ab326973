#pragma once

// start_failure_of(): why a supervisor could not be started on the host that it should have been on, for whoever waits
// for the start.
//
// Thread: pure functions.

#include <string>

#include "supervisor/client/start_supervisor.h"
#include "supervisor/core/state/launch_failure.h"

namespace monarch {

StartFailure start_failure_of(const std::string& host, const LaunchFailure& failure);

}  // namespace monarch
