#pragma once

// What people are told of calls that wait for long: one line, however many they are.
//
// Thread: pure functions.

#include <functional>
#include <string>
#include <vector>

#include "worker/core/post/call_table.h"
#include "worker/core/post/roster_view.h"

namespace monarch {

// `who_of`: who waits for that call, in words. `waits` has one at least.
std::string words_of(const std::vector<CallTable::Waiting>& waits,
                     const std::function<std::string(const CallKey&)>& who_of, const RosterView& roster);

}  // namespace monarch
