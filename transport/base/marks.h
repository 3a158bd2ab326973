#pragma once

// The mark of a keeper, whose environment nobody may read: who looks for what a job left finds it by its command line. Ranks, and what
// they start, are found by their environment; see launcher_variables.h.
//
// Thread: constants.

#include <string_view>

namespace monarch {

// monarch-worker --job UUID --host NAME
inline constexpr std::string_view kJobArgument = "--job";
inline constexpr std::string_view kHostArgument = "--host";

}  // namespace monarch
