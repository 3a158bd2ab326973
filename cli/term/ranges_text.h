#pragma once

// ranges_text: numbers for people, neighbours together.
//
// Thread: pure functions.

#include <cstdint>
#include <set>
#include <string>

namespace monarch {

// "0-7,9"; of more than 16 pieces the first ones, then "…".
std::string ranges_text(const std::set<std::uint32_t>& numbers);

}  // namespace monarch
