#pragma once

// From the text of a LinePattern to the steps of its automaton (Thompson's construction).
//
// Thread: a pure function.

#include <cstdint>
#include <string_view>
#include <vector>

#include "cli/line_pattern.h"

namespace monarch {

struct CompiledPattern {
  std::vector<LinePattern::Step> steps;
  std::vector<LinePattern::ByteSet> sets;
  std::uint32_t start = 0;
};

Result<CompiledPattern> compile_pattern(std::string_view pattern);

}  // namespace monarch
