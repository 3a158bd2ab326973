#pragma once

// nearest(): what a word that does not exist was most likely meant to be.
//
// Thread: a pure function.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monarch {

inline constexpr std::size_t kLongestCompared = 64;  // longer words are no slips

// The nearest of `known` by edit distance (insertions, deletions, changes, swaps), if it is near enough to be a slip.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace monarch
