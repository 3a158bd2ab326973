#pragma once

// The processes of this host that a strike means, and what is seen of them.
//
// Thread: any; until() blocks.

#include <functional>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/messages/check.h"
#include "transport/messages/strike.h"
#include "transport/process/process_scan.h"

namespace monarch {

struct StrikeTargets {
  std::vector<ProcessEntry> processes;  // in the order in which they are to be struck
  int signal = 0;                       // 0: none
};
// kNotFound: nobody whom the order means is there.
Result<StrikeTargets> targets_of(const StrikeOrder& order);

// Ranks of that job among these.
std::vector<RankThere> ranks_among(const std::vector<ProcessEntry>& there, const std::string& job_uuid);

// Those that live, and all that they have started by now.
std::vector<ProcessEntry> with_their_own(const std::vector<ProcessEntry>& processes);

bool is_stopped(const ProcessEntry& known);
bool is_gone(const ProcessEntry& known);

// Whether it holds within `patience`, looked at so often.
bool until(const std::function<bool()>& holds, Duration patience, Duration look = Duration::milliseconds(5));

}  // namespace monarch
