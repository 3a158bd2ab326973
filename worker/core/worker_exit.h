#pragma once

// What a keeper exits with where that means something to who runs it.
//
// Thread: constants.

#include <cstdint>

namespace monarch {

inline constexpr std::int32_t kExitOrphaned = 69;  // no supervisor was heard of for orphan_ttl, and no rank lives

}  // namespace monarch
