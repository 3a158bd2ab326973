#pragma once

// some_of: names for a sentence, the first few of them; the others are counted.

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/text.h"

namespace monarch {

inline constexpr std::size_t kMostNamed = 8;  // in one sentence

// "a, b and 3 more"
inline std::string some_of(std::vector<std::string> names) {
  const std::size_t unnamed = names.size() - std::min(names.size(), kMostNamed);
  names.resize(names.size() - unnamed);
  return text(join(names, ", "), unnamed > 0 ? text(" and ", unnamed, " more") : "");
}

}  // namespace monarch
