#pragma once

// The two clocks, read by drivers only; a core gets `now` passed in.

#include "transport/base/time.h"

namespace monarch {

Instant boot_now();   // CLOCK_BOOTTIME
WallTime wall_now();  // CLOCK_REALTIME

}  // namespace monarch
