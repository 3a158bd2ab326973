#pragma once

// Where a machine reaches itself, and nobody else reaches it; and whether it does: a sandbox or a network namespace of
// its own may have a loopback interface that is down.
//
// Thread: any.

#include "transport/base/result.h"

namespace monarch {

inline constexpr char kLoopbackAddress[] = "127.0.0.1";

// kUnsupported: it cannot be reached. Nothing is sent.
Status reach_loopback();

}  // namespace monarch
