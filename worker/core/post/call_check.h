#pragma once

// entered_of(): what a call asks for, or why it cannot be meant: what is wrong with a call itself is said before any
// rank is asked.
//
// Thread: pure functions.

#include <cstdint>
#include <optional>
#include <string>

#include "transport/base/result.h"
#include "transport/messages/post.h"
#include "worker/core/post/call_table.h"
#include "worker/core/post/post_limits.h"
#include "worker/core/post/roster_view.h"

namespace monarch {

// kInvalid: the message says why. `here`: its caller's host.
Result<CallTable::Entered> entered_of(const PostCall& call, const CallerName& caller, const RosterView& roster,
                                      const PostLimits& limits, HostId here);

// Of a call of kCardsActor: which generation's card its caller has; nothing: it says none.
std::optional<std::uint64_t> known_generation(const CallTarget& target);

// "…: a call carries 1GiB at most, 64MiB to another host".
std::string too_large(const char* what, std::uint64_t bytes, const PostLimits& limits);

std::string unknown_mesh(const std::string& name, const Roster& roster);

}  // namespace monarch
