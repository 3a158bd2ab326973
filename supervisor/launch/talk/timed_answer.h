#pragma once

// TimedAnswer: what `monarch-worker check` on a host answered, and when its request left here and it came. With the
// host's own two stamps these are what the host's clock is compared by.
//
// Thread: a value.

#include "transport/base/time.h"
#include "transport/messages/check.h"

namespace monarch {

struct TimedAnswer {
  CheckAnswer answer;
  WallTime left;  // the request, by this machine's clock
  WallTime came;  // the answer
};

}  // namespace monarch
