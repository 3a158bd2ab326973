#pragma once

// RestartBudget: which failures of a gang still count, and how long the next restart waits. A failure counts while it
// is younger than the window; who keeps the list empties it when progress was made.
//
// Thread: pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"

namespace monarch {

// Without what is older than the window, and without more than a budget can compare.
void forget_older(std::vector<Instant>& spent, Duration window, Instant now);
std::uint32_t still_count(const std::vector<Instant>& spent, Duration window, Instant now);

// Before the restart that follows `failures` earlier ones: the first is immediate, the second waits for the back-off,
// which doubles from there. The jitter comes from the seed alone, so that a replay waits as long.
Duration backoff_of(const RestartPolicy& policy, std::uint32_t failures, std::uint64_t seed);

// Of a gang's restart: gangs that failed together do not start together.
std::uint64_t jitter_seed(const JobUuid& job, MeshId mesh, GangId gang, std::uint64_t restart);

// "2 of 4 in 10m", "3, unlimited"
std::string spent_text(std::uint32_t number, std::optional<std::uint32_t> limit, Duration window);

}  // namespace monarch
