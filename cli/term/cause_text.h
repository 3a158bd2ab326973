#pragma once

// cause_text(): why a job failed, in one line for people.
//
// Thread: a pure function.

#include <string>

#include "transport/messages/viewer.h"

namespace monarch {

// "trainer/11 (gang 1, RANK 3) on v2, pid 4711: exit code 7"
std::string cause_text(const FirstCause& cause);

}  // namespace monarch
