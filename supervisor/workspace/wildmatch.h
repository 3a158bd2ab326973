#pragma once

// wildmatch(): the patterns of .gitignore files against one name or path, as git reads them (gitignore(5)).
//
// Thread: pure functions.

#include <cstdint>
#include <string_view>

namespace monarch {

enum class WildScope : std::uint8_t {
  kName,  // no slash in it: every * matches anything
  kPath,  // * and ? stop at a slash, ** does not where it stands between slashes
};

// Takes time in the product of both lengths for each run of stars, not more.
bool wildmatch(std::string_view pattern, std::string_view subject, WildScope scope);

}  // namespace monarch
