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

// What follows "there is no such one" of an owner that has `known`: "; did you mean adder?", or all that it has.
std::string nearest_or_all(std::string_view word, const std::vector<std::string>& known);

}  // namespace monarch
