#pragma once

// Which job a person means by JOB: an id, a unique beginning of one, the name if one such job is live, `last`, or
// nothing if only one is live.
//
// Thread: a pure function; list_jobs touches the file system.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/journal/state_dir.h"
#include "transport/base/result.h"
#include "transport/base/time.h"

namespace monarch {

enum class JobLife : std::uint8_t {
  kLive,       // a supervisor holds it, or Slurm's queue
  kAbandoned,  // none does, and there is no verdict: it crashed, or is being started again
  kEnded,      // there is a verdict
};

struct KnownJob {
  std::string id;
  JobLife life = JobLife::kEnded;
  WallTime created;
  bool queued = false;  // of a live one: Slurm has yet to start its supervisor
};

// "hello" of "hello-3fa2"
std::string job_name(std::string_view id);

// "live", "abandoned", "ended"
std::string_view life_name(JobLife life);
// The same for a person, to whom "queued" says more of a live one.
std::string_view life_word(const KnownJob& job);

// Oldest first. A directory that is not ours is left out: resolving its id by name says why.
Result<std::vector<KnownJob>> list_jobs(const StateDir& state);

// The id. kNotFound: no such job; kInvalid: more than one; the message lists the candidates.
Result<std::string> resolve_job(const std::vector<KnownJob>& jobs, std::string_view written);

}  // namespace monarch
