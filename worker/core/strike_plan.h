#pragma once

// plan_strike(): whom of a job's processes on a host a strike hits, with which signal, in which order. Keepers come
// first, then daemons: they must not see what happens to the others.
//
// Thread: values.

#include <cstdint>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/messages/strike.h"

namespace monarch {

enum class StrikeRole : std::uint8_t { kKeeper, kDaemon, kRank, kSupervisor, kOther };

// A process of the job on that host.
struct StrikeCandidate {
  std::int32_t pid = 0;
  StrikeRole role = StrikeRole::kOther;
  std::string mesh = {};  // kRank
  std::uint32_t rank = 0;
};

struct Blow {
  std::int32_t pid = 0;
  int signal = 0;  // 0: none
};

// kInvalid: it makes no sense. kNotFound: nobody of that kind is there.
Result<std::vector<Blow>> plan_strike(const StrikeOrder& order, const std::vector<StrikeCandidate>& there);

// The script for `nft -f -` that drops what kCut is to drop, in a table of its own. kInvalid: it makes no sense.
Result<std::string> cut_script(const StrikeOrder& order, const std::string& table);

}  // namespace monarch
