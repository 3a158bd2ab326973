#pragma once

// take_within(): what an inbox has, for a thread without a loop.
//
// Thread: the inbox's owner; it waits.

#include <poll.h>

#include <vector>

#include "transport/base/clock.h"
#include "transport/base/time.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/inbox.h"

namespace monarch {

// Empty: there was nothing until then.
template <class T>
std::vector<T> take_within(Inbox<T>& inbox, Instant until) {
  for (;;) {
    std::vector<T> values = inbox.take_all();
    const Instant now = boot_now();
    if (!values.empty() || now >= until) return values;
    pollfd waiting{inbox.descriptor(), POLLIN, 0};
    (void)::poll(&waiting, 1, EventLoop::wait_milliseconds(now, until));  // a signal: it is looked at again
  }
}

}  // namespace monarch
