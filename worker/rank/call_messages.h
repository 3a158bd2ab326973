#pragma once

// Calls and answers as the C ABI has them (monarch/plugin_v1.h), and as the door has them.
//
// Thread: pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <monarch/plugin_v1.h>

#include "transport/base/time.h"
#include "transport/messages/post.h"
#include "worker/rank/bodies/body_pieces.h"

namespace monarch {

// The deadline of a call that has so many nanoseconds; nothing: it has none.
std::optional<Instant> deadline_after(std::int64_t nanoseconds, Instant now);

// Its deadline counts from `now`; it has no number and no body.
PostCall message_of(const monarch_call_v1& asked, Instant now);

// The arguments, where they lie.
BodyPieces arguments_of(const monarch_call_v1& asked);

// Whether a rank is among them.
bool are_named(const std::vector<RankSteps>& ranks, std::uint32_t rank);

// Those of them that have not answered, in their order.
std::vector<std::uint32_t> missing_of(const std::vector<RankSteps>& ranks, std::vector<std::uint32_t> answered);

// MONARCH_VALUE …
std::uint32_t kind_of(OutcomeKind kind);

// Without a value. It is valid as long as `text`.
monarch_answer_v1 answer_of(std::uint32_t rank, std::uint32_t kind, const std::string& text);

}  // namespace monarch
