#pragma once

// kLoopbackAddress: where a machine reaches itself, and nobody else reaches it.
//
// Thread: a constant.

namespace monarch {

inline constexpr char kLoopbackAddress[] = "127.0.0.1";

}  // namespace monarch
