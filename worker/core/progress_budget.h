#pragma once

// What ranks say of themselves must not make a beat too long to be sent, which would be the end of a host with many
// ranks.
//
// Thread: a value.

#include <cstddef>
#include <vector>

#include "transport/messages/rank.h"

namespace monarch::daemon {

// Of all ranks' progress in one beat: a quarter of what a control message may have.
inline constexpr std::size_t kProgressBytesPerBeat = 256U << 10U;

// About what it takes on the wire.
std::size_t wire_size(const RankProgress& progress);

class ProgressBudget {
 public:
  // Empties the progress of ranks that do not fit; the next beat begins with those. An empty one says nothing, and
  // whoever hears it keeps what it knew.
  void fit(std::vector<RankReport>& reports);

 private:
  std::size_t first_ = 0;
};

}  // namespace monarch::daemon
