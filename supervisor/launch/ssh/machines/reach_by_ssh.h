#pragma once

// reach_by_ssh(): talks with a check on each of these hosts, over a session for each talk.
//
// Thread: the loop's; sessions have threads of their own.

#include <cstdint>
#include <memory>

#include "supervisor/launch/reach/check_reach.h"
#include "supervisor/launch/ssh/ssh_access.h"

namespace monarch {

std::unique_ptr<HostReach> reach_by_ssh(EventLoop& loop, SshAccess access, std::uint64_t seed);

}  // namespace monarch
