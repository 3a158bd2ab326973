#pragma once

// Small files of /proc and /sys, and what is in their folders. Bounded; nothing is followed that is not theirs.
//
// Thread: any.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace monarch {

// At most 64 KiB, without blanks at the end; nothing if it cannot be read.
std::optional<std::string> read_small(const std::string& path);
std::optional<std::uint64_t> read_number(const std::string& path);
// Sorted; empty if there is no such folder. Names that begin with a dot are hidden.
std::vector<std::string> names_in(const std::string& path);
std::vector<std::string> hidden_names_in(const std::string& path);

// "12 GiB"
std::string size_text(std::uint64_t bytes);

}  // namespace monarch
