#pragma once

// The fence of a lease: until when a host that was granted one may let its ranks act, on the supervisor's clock. A
// worker counts its lease from the moment at which it sent the beat that was acknowledged, which is before the
// acknowledgement was queued; its clock may run slower than ours by one part in a thousand, and it looks at it, and
// kills, within half a second.
//
// Thread: pure functions.

#include "transport/base/time.h"

namespace monarch {

inline constexpr Duration kFenceMargin = Duration::milliseconds(500);

inline Instant fence_of(Instant queued, Duration lease) { return queued + lease + lease / 1'000 + kFenceMargin; }

}  // namespace monarch
