#pragma once

// The schema of a spec as JSON Schema (draft-07), for editors: completion, documentation and marks under what is wrong
// while it is typed. It says what one key may hold; what several say together (times, hosts, names of others) is for
// `monarch validate`.
//
// Thread: pure functions.

#include <string>

namespace monarch {

// Pretty-printed, ending with a newline.
std::string json_schema();

}  // namespace monarch
