#pragma once

// Which idle slots are claimed, by whom, and what their ranks get. Slots of a claim are gangs of one rank.
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/ids.h"
#include "transport/messages/claim.h"

namespace monarch {

// Who has claims.
struct ClaimHolder {
  HostId host;
  ClaimOwner owner;
  auto operator<=>(const ClaimHolder&) const = default;
};

struct SlotClaim {
  ClaimId id;
  ClaimHolder holder;
  std::uint64_t number = 0;  // of the holder's wish: asked again, it is answered with this claim
  MeshId mesh;
  std::vector<Rank> ranks;  // in order
  SlotWish what;            // its hosts and count are these ranks
};

struct ClaimState {
  std::uint64_t next = 1;
  std::vector<SlotClaim> claims;            // by id
  std::vector<std::vector<ClaimId>> slots;  // of each idle mesh the claim that has the slot; 0: none. Of others: empty
};

}  // namespace monarch
