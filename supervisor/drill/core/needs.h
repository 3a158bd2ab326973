#pragma once

// unmet_need(): what a host lacks for a fault, as its check tells of it; where_had(): the same of all hosts of a job.
//
// Thread: pure.

#include <cstdint>
#include <string>
#include <vector>

#include "supervisor/drill/core/faults.h"
#include "transport/messages/check.h"

namespace monarch::drill {

enum class RanksTraced : std::uint8_t {
  kByTheirKeeper,
  kByAnybody,  // of their user: the job says `drills: {allow: true}`
};

// Empty: nothing.
std::string unmet_need(FaultNeed need, const FaultRights& there, RanksTraced ranks);

// A host of a job, and what it said when it was asked.
struct HostRights {
  std::string host;
  FaultRights rights;
  std::string error;  // why it did not say it; empty: it did
};

struct WhereHad {
  std::size_t hosts = 0;  // of all that were asked
  std::string why_not;    // on the others: "v[2-3]: nft is not there; v5: it did not answer"; empty: there is none
};
// A fault of the supervisor can be had on all of them: none is asked for it.
WhereHad where_had(const Fault& fault, const std::vector<HostRights>& hosts, RanksTraced ranks);

}  // namespace monarch::drill
