#pragma once

// The grammar of names that a spec gives to jobs, meshes and dimensions.
//
// Thread: pure functions.

#include <string>
#include <string_view>

namespace monarch {

inline constexpr std::size_t kLongestName = 32;

bool is_name(std::string_view name);  // [a-z][a-z0-9_]{0,31}
bool is_reserved_name(std::string_view name);
std::string nearest_name(std::string_view name);  // the name that `name` could have been; empty: none

}  // namespace monarch
