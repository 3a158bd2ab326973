#pragma once

// What Slurm says of a job of ours, in the words of `scontrol show job -d`: which nodes it is given, and how much of
// each, so that another one can be asked for that is like them.
//
// Thread: pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/base/result.h"
#include "transport/base/time.h"

namespace monarch {

// Empty and 0: it does not say, or there is none.
struct SlurmJobFacts {
  std::string state;      // "RUNNING"
  std::string partition;  // the first, of several
  std::string account;
  std::string qos;
  std::string reservation;
  std::string features;
  std::optional<Duration> time_left;  // until its time limit; nothing: it has none
  bool exclusive = false;             // it shares no node
  std::uint32_t cpus = 0;             // of its first group of nodes, on each
  std::uint64_t memory_mib = 0;       // the same
  std::string gres;                   // the same: "gpu:2"
};

// The answer to job_detail_query(). kInvalid: it is not about this job.
Result<SlurmJobFacts> read_job_facts(std::string_view answer, std::uint32_t job);

}  // namespace monarch
