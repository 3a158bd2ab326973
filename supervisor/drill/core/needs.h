#pragma once

// unmet_need(): what a host lacks for a fault, as its check tells of it.
//
// Thread: pure.

#include <cstdint>
#include <string>

#include "supervisor/drill/core/faults.h"
#include "transport/messages/check.h"

namespace monarch::drill {

enum class RanksTraced : std::uint8_t {
  kByTheirKeeper,
  kByAnybody,  // of their user: the job says `drills: {allow: true}`
};

// Empty: nothing.
std::string unmet_need(FaultNeed need, const FaultRights& there, RanksTraced ranks);

}  // namespace monarch::drill
