#pragma once

// The grammar of names of environment variables, and which of them are ours to set.
//
// Thread: pure functions.

#include <string_view>

namespace monarch {

bool is_variable(std::string_view name);
bool is_variable_pattern(std::string_view name);  // the same with one `*` at its end
bool is_variable_of_ours(std::string_view name);  // set for every rank, so that nobody else may
bool fits_variable(std::string_view pattern, std::string_view name);

}  // namespace monarch
