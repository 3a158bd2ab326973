#pragma once

// word_of(): what the first word of a slot is while it holds that version. 0: it holds none.
//
// Thread: a pure function.

#include <cstdint>

namespace monarch::tensor {

constexpr std::uint64_t word_of(std::uint64_t version) { return version + 1; }

}  // namespace monarch::tensor
