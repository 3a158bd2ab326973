#pragma once

// Paths of keys, as messages name them ("meshes.trainer.stop.grace") and as the schema does ("meshes.*.stop.grace"):
// the parts of one, with a point between them. The top level has the empty path. Whether such a key exists is the
// schema's matter.
//
// Thread: pure functions.

#include <string>
#include <string_view>

namespace monarch {

std::string child_path(std::string_view path, std::string_view key);
std::string_view parent_path(std::string_view path);  // of a key of the top level: empty
std::string_view last_key(std::string_view path);

}  // namespace monarch
