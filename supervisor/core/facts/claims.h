#pragma once

// Claims: who has an idle slot, and which are left.
//
// Thread: pure functions.

#include <cstdint>
#include <map>
#include <string>

#include "supervisor/core/crew/core_basis.h"
#include "supervisor/core/state/claim_state.h"

namespace monarch {

// Null: nobody has it. Of a mesh without idle slots it is never anybody's.
const SlotClaim* claim_of(const CoreFacts& job, MeshId mesh, GangId slot);
const SlotClaim* find_claim(const CoreFacts& job, ClaimId id);
// Nobody wants this slot, and the job goes on. Of what is no slot: never.
bool rests(const CoreFacts& job, MeshId mesh, GangId slot);
// What a wish of this holder with that number became; null: nothing yet, or it was let go.
const SlotClaim* claim_asked_for(const CoreFacts& job, const ClaimHolder& holder, std::uint64_t number);
// Its own variables, for all ranks of its claim and for it.
std::map<std::string, std::string> env_of(const SlotClaim& claim, Rank rank);

}  // namespace monarch
