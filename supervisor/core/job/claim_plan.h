#pragma once

// What a process wishes of idle slots, held against the job as it is: which of them it gets, or why it gets none. What
// follows is the core's (machines/claims.h).
//
// Thread: pure functions.

#include <cstdint>

#include "supervisor/core/crew/core_basis.h"
#include "supervisor/core/state/events.h"
#include "transport/base/result.h"
#include "transport/messages/claim.h"

namespace monarch {

// The lowest idle slots of each host that is named, in the order of the hosts; all or none. kBusy: too few are idle
// there; the words are for people.
Result<SlotsClaimed> claim_plan(const CoreFacts& job, const ClaimHolder& holder, std::uint64_t number,
                                const SlotWish& wish);

}  // namespace monarch
