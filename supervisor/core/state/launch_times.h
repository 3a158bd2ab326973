#pragma once

// What is said of LaunchTimes, for people who want their job to start sooner and for scripts/bench. Nothing is decided
// by them.
//
// Thread: pure functions.

#include <string>
#include <utility>
#include <vector>

#include "transport/base/time.h"
#include "transport/messages/launch.h"

namespace monarch {

// " (log-in 52ms, copy 310ms, start 21ms, call back 4ms)", without what was zero; empty where nothing was measured.
std::string where_time_went(const LaunchTimes& times, Duration call_back);

// Details of the event: waited_ms, log_in_ms, copy_ms, start_ms, call_back_ms; empty where nothing was measured.
std::vector<std::pair<std::string, std::string>> launch_details(const LaunchTimes& times, Duration call_back);

}  // namespace monarch
