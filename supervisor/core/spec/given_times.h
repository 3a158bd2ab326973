#pragma once

// Times that the core gives by itself and no spec says, where others than the core judge by them, too.
//
// Thread: constants.

#include "transport/base/time.h"

namespace monarch {

// Somebody who looks at a process with `kill -STOP` and goes on within this is no failure.
inline constexpr Duration kStoppedGrace = Duration::seconds(3);

// A host that was lost is tried again after this, twice as long each time.
inline constexpr Duration kFirstReturn = Duration::seconds(30);

}  // namespace monarch
