#pragma once

// The first line that a monarch which was started over SSH writes: what comes before it is a shell's, what follows it
// its own talk.
//
// Thread: a constant.

#include <string_view>

namespace monarch {

inline constexpr std::string_view kProgramGreeting = "monarch-talks 1";

}  // namespace monarch
