#pragma once

// Actions in a recording: how they are written there, and as words for people.
//
// Thread: pure functions.

#include <string>
#include <string_view>

#include "supervisor/core/state/actions.h"
#include "supervisor/core/state/events.h"

namespace monarch::sim {

// An event for people goes without its number: within a step that says nothing but the order.
std::string encode_action(const Action& action);
// "to host 3: STOP of 0/1 0/2 generation 1.2, signal 15, grace 3 s"; of one that this tree cannot read, why.
std::string action_words(std::string_view encoding);

// "RankChanged"
std::string event_words(const CoreEvent& event);

// Where two encodings begin to differ: "at byte 63 of 212 …MASTER_PORT\xa54242…, now …MASTER_PORT\xa54243…".
std::string where_they_differ(std::string_view before, std::string_view now);

}  // namespace monarch::sim
