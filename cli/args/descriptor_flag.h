#pragma once

// descriptor_of(): a descriptor that another process of ours has left open for us and named by its number.
//
// Thread: any, before anything is opened here.

#include <optional>
#include <string>

namespace monarch {

// Nothing: it is no number of a descriptor above the standard ones, or nothing is open there.
std::optional<int> descriptor_of(const std::string& number);
// How many were left open, by their number; 0: it is no number.
int descriptor_count(const std::string& number);

}  // namespace monarch
