#include "worker/core/daemon_core_beats.h"

#include <algorithm>

#include "transport/base/assert.h"

namespace monarch::daemon {
namespace {

constexpr unsigned kStartsShift = 40;  // 2^40 beats of one daemon outlast any job

}  // namespace

BeatSchedule::BeatSchedule(Duration heartbeat, std::uint32_t daemon_starts)
    : heartbeat_(heartbeat), next_seq_((std::uint64_t{daemon_starts} << kStartsShift) + 1) {
  MONARCH_ASSERT(heartbeat > Duration::zero());
}

void BeatSchedule::hurry(Instant now) {
  const Instant soonest = last_sent_ ? std::max(now, *last_sent_ + kFloor) : now;
  due_ = std::min(due_, soonest);
}

std::uint64_t BeatSchedule::send(Instant now, double jitter) {
  MONARCH_ASSERT(jitter >= -1.0 && jitter <= 1.0);
  const std::uint64_t seq = next_seq_++;
  if (sent_.size() >= kWindow) sent_.pop_front();
  sent_.emplace_back(seq, now);
  last_sent_ = now;
  const auto shift = static_cast<std::int64_t>(static_cast<double>(heartbeat_.count_nanoseconds()) * jitter / 10.0);
  due_ = now + heartbeat_ + Duration::nanoseconds(shift);
  return seq;
}

std::optional<Instant> BeatSchedule::answered(std::uint64_t seq) {
  const auto found = std::lower_bound(sent_.begin(), sent_.end(), seq,
                                      [](const auto& entry, std::uint64_t wanted) { return entry.first < wanted; });
  if (found == sent_.end() || found->first != seq) return std::nullopt;
  highest_answered_ = std::max(highest_answered_, seq);
  return found->second;
}

std::optional<Instant> BeatSchedule::answered(std::uint64_t seq, Instant now) {
  const bool first = seq > highest_answered_;
  const std::optional<Instant> sent_at = answered(seq);
  if (sent_at && first) round_trip_ = now - *sent_at;
  return sent_at;
}

}  // namespace monarch::daemon
