#pragma once

// PastPlaces: on which hosts the generations of a gang ran, for what a host says of one that is over: no host speaks
// for a generation that it never had (I23). The oldest moves are forgotten, and then nobody speaks for those
// generations.
//
// Thread: values.

#include <cstddef>
#include <vector>

#include "transport/base/ids.h"

namespace monarch {

// From this generation on, until the next such record.
struct PastPlace {
  Generation first;
  std::vector<HostId> hosts;  // in the order of the gang's ranks
};

// Moves of one gang that are remembered.
inline constexpr std::size_t kPlacesKept = 16;

// The generation was decided to run there.
void note_place(std::vector<PastPlace>& places, Generation generation, std::vector<HostId> hosts);
// Whether this host of the gang, counted from its first, was `where` in that generation.
bool ran_on(const std::vector<PastPlace>& places, Generation generation, std::size_t index, HostId where);

}  // namespace monarch
