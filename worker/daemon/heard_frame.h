#pragma once

// What a supervisor's frames mean to the daemon.
//
// Thread: pure functions.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/zmq/frame.h"
#include "worker/core/daemon_core.h"

namespace monarch::daemon {

// kInvalid unless it is a header and a payload that can be read, kUnsupported for what no supervisor says on the
// control port. Orders that the keeper is to read are taken as they are. `sent_at` tells when the beat of a number was
// sent.
Result<FrameHeard> heard_from_link(const std::vector<ZmqFrame>& frames,
                                   const std::function<std::optional<Instant>(std::uint64_t seq)>& sent_at);

}  // namespace monarch::daemon
