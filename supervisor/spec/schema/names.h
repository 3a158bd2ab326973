#pragma once

// The grammar of names that a spec gives to jobs, meshes, dimensions and environment variables.
//
// Thread: pure functions.

#include <string>
#include <string_view>

namespace monarch {

inline constexpr std::size_t kLongestName = 32;

bool is_name(std::string_view name);  // [a-z][a-z0-9_]{0,31}
bool is_reserved_name(std::string_view name);
std::string nearest_name(std::string_view name);  // the name that `name` could have been; empty: none

bool is_variable(std::string_view name);          // of the environment
bool is_variable_pattern(std::string_view name);  // the same with one `*` at its end
bool is_variable_of_ours(std::string_view name);  // set for every rank, so that nobody else may

}  // namespace monarch
