#pragma once

// PostLimits: how much may be under way in a post, and what is said beyond it.
//
// Thread: values.

#include <cstddef>
#include <cstdint>

#include "transport/base/limits.h"
#include "transport/messages/post.h"
#include "worker/core/post/lines.h"

namespace monarch {

struct PostLimits {
  std::size_t calls = 16'384;                 // of a caller, under way; then its door is not read
  std::uint64_t call_bytes = 256U << 20U;     // the same, of their bodies
  std::size_t window_calls = kWindowCalls;    // of a caller at one actor of a rank; more wait at the caller's post
  std::uint64_t window_bytes = kWindowBytes;  // the same, of what they carry; one alone may have more
  std::uint64_t body_bytes = 64U << 20U;      // of one call; more is refused
  std::size_t of_an_actor = 1'024;            // deliveries that have not ended; one more is kBusy
  std::uint64_t actor_bytes = 64U << 20U;     // the same, of what they carry; one alone may have more
  std::size_t of_a_rank = 16'384;             // the same of all actors of a rank
  std::uint64_t rank_bytes = 256U << 20U;
  std::uint64_t held_bytes = 1U << 30U;  // all bodies that the post has; then a delivery is kBusy
  std::size_t cards = 4;                 // that a rank may have put
  std::uint64_t card_bytes = limits::kCardBytes;
  InLineLimits line;  // what is kept for each other host
};

}  // namespace monarch
