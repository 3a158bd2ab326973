#pragma once

// A schema as JSON Schema (draft-07), for editors: completion, documentation and marks under what is wrong
// while it is typed. It says what one key may hold; what several say together (times, hosts, names of others) is for
// the command that reads such files.
//
// Thread: pure functions.

#include <string>

#include "supervisor/spec/schema/schema.h"

namespace monarch {

// Pretty-printed, ending with a newline.
std::string json_schema(const Schema& schema);

}  // namespace monarch
