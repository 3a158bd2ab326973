#pragma once

// JobEnd: when Slurm takes back the nodes of a job, and why, as `scontrol show job` tells it.
//
// Thread: pure functions.

#include <cstdint>
#include <optional>
#include <string_view>

#include "supervisor/core/state/foreseen_end.h"
#include "supervisor/launch/slurm/slurm_commands.h"
#include "transport/base/time.h"

namespace monarch {

// Of slurm.conf, where nobody says it.
inline constexpr Duration kUsualKillWait = Duration::seconds(30);

struct JobEnd {
  SlurmJobState state = SlurmJobState::kUnknown;
  std::optional<std::int64_t> start;  // seconds since the epoch, on the controller's clock
  std::optional<std::int64_t> end;    // the same; nothing: it has none
  bool preempted = false;
  bool time_is_up = false;
};

// Times come as seconds since the epoch: whatever zone and format Slurm's times have elsewhere.
Words job_end_query(std::uint32_t job, const Words& environment);
// kUnknown: it is not in the answer.
JobEnd read_job_end(std::string_view answer, std::uint32_t job);

// How long Slurm waits between TERM and KILL.
Words kill_wait_query(const Words& environment);
std::optional<Duration> read_kill_wait(std::string_view answer);

// How long before the end of a job that may run for `limit` its ranks are told: `warn`, or of a short one a tenth of
// its time.
Duration warning_of(Duration warn, std::optional<Duration> limit);

}  // namespace monarch
