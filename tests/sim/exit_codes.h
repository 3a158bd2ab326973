#pragma once

// Which exit code a verdict may carry, by the table of transport/base/exit_code.h.
//
// Thread: pure functions.

#include "transport/messages/viewer.h"

namespace monarch::sim {

// A rank that was stopped because it was not ready in time, or hung.
bool made_no_progress(const FirstCause& cause);

bool exit_code_fits(const Verdict& verdict);

}  // namespace monarch::sim
