#pragma once

// BoundPort: a TCP port that is bound and not listened on, so that nobody is given it, while a socket with SO_REUSEADDR
// can still bind and listen on it (as torch's store does). It is bound on all addresses of both families where there is
// IPv6.
//
// Thread: any. A child's copy holds the port as well, until it is closed.

#include <cstdint>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

struct BoundPort {
  UniqueFd socket;
  std::uint16_t number = 0;
};

// `number` 0: one of the kernel's choice. kBusy where it is taken.
Result<BoundPort> bind_port(std::uint16_t number);
// The highest free one of first to last, what a spec names otherwise being mostly its first; first 0: any. Nobody else
// holds it, in this way either. kBusy where all are taken.
Result<BoundPort> bind_free_port(std::uint16_t first, std::uint16_t last);

}  // namespace monarch
