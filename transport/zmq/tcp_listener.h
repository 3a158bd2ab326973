#pragma once

// listen_at(): a TCP socket that listens, before libzmq has anything to do with it. Who connects waits in its backlog
// until somebody accepts: so its port can be told to others at once. It is closed in children.
//
// Thread: any.

#include <cstdint>
#include <string>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

struct PortRange {
  std::uint16_t first = 0;  // 0: any free port
  std::uint16_t last = 0;
};

// At a numeric address; the first port that is free is taken. At "::" it hears IPv4 as well. kBusy: every port of the
// range is taken.
Result<UniqueFd> listen_at(const std::string& address, const PortRange& ports);

}  // namespace monarch
