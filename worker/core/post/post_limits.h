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
  std::uint64_t call_bytes = 256U << 20U;     // the same, of what they carry
  std::size_t window_calls = kWindowCalls;    // of a caller at one actor of a rank; more wait at the caller's post
  std::uint64_t window_bytes = kWindowBytes;  // the same, of what they carry; one alone may have more
  std::uint64_t body_bytes = kBodyBytes;      // of one call, or of a result; more is refused
  std::uint64_t far_bytes = kFarBodyBytes;    // the same, to another host
  // Deliveries that have not ended, and what they carry; one more is kBusy. A host may have as much as it leaves to
  // others (shared_room.h), so half of it where nobody else calls.
  std::size_t of_an_actor = 2 * kWindowCalls;
  std::uint64_t actor_bytes = 2 * kWindowBytes;
  std::size_t of_a_rank = 32'768;  // of all actors of a rank
  std::uint64_t rank_bytes = 512U << 20U;
  std::size_t share = 1;  // of these: so many times what a host leaves
  // All bodies that the post has, of another host as above; then kBusy, too. The same of those that are too large for
  // other hosts.
  std::uint64_t held_bytes = 1U << 30U;
  std::size_t cards = 4;  // that a rank may have put
  std::uint64_t card_bytes = limits::kCardBytes;
  std::size_t card_asks = 131'072;  // that wait for cards, and what is kept of them: of a host as above; then kBusy
  std::uint64_t card_ask_bytes = 64U << 20U;
  // Answers of a turn that go in one message, to a door or to another host.
  std::size_t together = kAnswersTogether;
  std::size_t together_bytes = kAnswersTogetherBytes;
  InLineLimits line;  // what is kept for each other host
};

}  // namespace monarch
