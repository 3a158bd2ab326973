#pragma once

// make_roster(): what every host's post is told of the job, from what the core knows and from where posts listen. The
// number is left to who sends it.
//
// Thread: a pure function.

#include <cstdint>
#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/core/spec/placement.h"
#include "supervisor/core/state/job_state.h"
#include "transport/base/ids.h"
#include "transport/messages/roster.h"

namespace monarch {

// Of a host of the pool.
struct PostPlace {
  std::uint16_t port = 0;  // 0: none is known
  std::string without;     // it has no post, and is not about to have one: why
};

struct RosterSource {
  const JobSpec& spec;
  const JobState& state;
  const Placement& placement;
  const std::vector<PoolHost>& pool;
  const std::vector<PostPlace>& posts;  // by HostId
  std::vector<RosterFailure> failures;  // the newest, in the order of their numbers
};

Roster make_roster(const RosterSource& source);

}  // namespace monarch
