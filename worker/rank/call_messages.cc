#include "worker/rank/call_messages.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace monarch {

bool are_named(const std::vector<RankSteps>& ranks, std::uint32_t rank) {
  return std::any_of(ranks.begin(), ranks.end(), [rank](const RankSteps& steps) {
    const std::uint32_t beyond = rank - steps.first;
    const std::uint32_t step = std::max(steps.step, 1U);
    return rank >= steps.first && beyond % step == 0 && beyond / step < steps.count;
  });
}

std::vector<std::uint32_t> missing_of(const std::vector<RankSteps>& ranks, std::vector<std::uint32_t> answered) {
  std::sort(answered.begin(), answered.end());
  std::vector<std::uint32_t> missing;
  for (const RankSteps& steps : ranks) {
    for (std::uint32_t i = 0; i < steps.count; ++i) {
      const std::uint32_t rank = steps.first + i * steps.step;
      if (!std::binary_search(answered.begin(), answered.end(), rank)) missing.push_back(rank);
    }
  }
  return missing;
}

std::uint32_t kind_of(OutcomeKind kind) {
  switch (kind) {
    case OutcomeKind::kValue: return MONARCH_VALUE;
    case OutcomeKind::kRemoteError: return MONARCH_REMOTE_ERROR;
    case OutcomeKind::kRankLost: return MONARCH_RANK_LOST;
    case OutcomeKind::kDeadline: return MONARCH_DEADLINE;
    case OutcomeKind::kBusy: return MONARCH_BUSY;
    case OutcomeKind::kGone: return MONARCH_GONE;
    case OutcomeKind::kCancelled: return MONARCH_CANCELLED;
    case OutcomeKind::kRefused: return MONARCH_REFUSED;
  }
  return MONARCH_GONE;
}

monarch_answer_v1 answer_of(std::uint32_t rank, std::uint32_t kind, const std::string& text) {
  return {.struct_size = sizeof(monarch_answer_v1),
          .kind = kind,
          .rank = rank,
          .reserved = 0,
          .generation = 0,
          .value = {"", 0},
          .type = "",
          .text = text.c_str(),
          .traceback = ""};
}

PostCall message_of(const monarch_call_v1& asked, Instant now) {
  PostCall call;
  call.mesh = asked.mesh;
  for (std::size_t i = 0; i < asked.ranks_count; ++i) {
    const monarch_ranks_v1& ranks = asked.ranks[i];
    call.ranks.push_back({.first = ranks.first, .count = ranks.count, .step = ranks.step});
  }
  call.target = {.actor = asked.actor, .endpoint = asked.endpoint, .signature = asked.signature};
  call.quiet = (asked.flags & MONARCH_CALL_QUIET) != 0;
  call.deadline = deadline_after(asked.deadline_ns, now);
  return call;
}

// A plugin of before has no pieces at the end of its struct.
BodyPieces arguments_of(const monarch_call_v1& asked) {
  const bool knows_pieces = asked.struct_size >= offsetof(monarch_call_v1, piece_count) + sizeof asked.piece_count;
  if (knows_pieces && asked.piece_count > 0) return {asked.pieces, asked.piece_count};
  return std::string_view(static_cast<const char*>(asked.arguments.data), asked.arguments.size);
}

std::optional<Instant> deadline_after(std::int64_t nanoseconds, Instant now) {
  constexpr std::int64_t kLongest = Duration::seconds(100LL * 365 * 24 * 3'600).count_nanoseconds();
  if (nanoseconds <= 0 || nanoseconds >= kLongest) return std::nullopt;
  return now + Duration::nanoseconds(nanoseconds);
}

}  // namespace monarch
