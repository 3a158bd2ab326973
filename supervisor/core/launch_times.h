#pragma once

// LaunchTimes: where the time went until a worker had told its key, as its launcher measured it, for people who want their job to start
// sooner and for scripts/bench. Nothing is decided by it.
//
// Thread: values.

#include <string>
#include <utility>
#include <vector>

#include "transport/base/time.h"

namespace monarch {

// All zero where the launcher has nothing to tell apart.
struct LaunchTimes {
  Duration waited;  // for its turn, and for attempts that were worth another
  Duration log_in;  // dialling, the host's key, authentication
  Duration copy;    // of the worker's file; zero where the host had it
  Duration start;   // of the worker, until it told its key
  bool operator==(const LaunchTimes&) const = default;
};

// " (log-in 52ms, copy 310ms, start 21ms, call back 4ms)", without what was zero; empty where nothing was measured.
std::string where_time_went(const LaunchTimes& times, Duration call_back);

// Details of the event: waited_ms, log_in_ms, copy_ms, start_ms, call_back_ms; empty where nothing was measured.
std::vector<std::pair<std::string, std::string>> launch_details(const LaunchTimes& times, Duration call_back);

}  // namespace monarch
