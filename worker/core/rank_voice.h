#pragma once

// RankVoice: what one incarnation has said of itself so far, and when its keeper tells that: READY=1, its first step
// and the first beyond where its gang had been at once, all else at most once a period, the last value of each. So a
// rank that says a hundred thousand things a second costs its host no beat.
//
// Thread: a value.

#include <cstdint>
#include <optional>

#include "transport/base/time.h"
#include "transport/messages/rank.h"
#include "worker/core/notify.h"

namespace monarch {

class RankVoice {
 public:
  explicit RankVoice(Duration period) : period_(period) {}

  // Its gang had been there before.
  void look_beyond(std::optional<std::uint64_t> furthest) { furthest_ = furthest; }
  void hear(const Notice& notice, Instant now);
  // Something came that was not taken: its count is told within the period.
  void dropped(Instant now);
  // When what was heard is told; never() with nothing new.
  Instant due() const { return due_; }
  // The driver tells it.
  void told(Instant now);

  bool ready() const { return ready_; }
  const RankProgress& progress() const { return progress_; }
  // Values that were none, and metrics beyond the limit.
  std::uint64_t bad() const { return bad_; }

 private:
  // Whether it is one of the two steps that are told at once.
  bool mark(std::uint64_t step, Instant now);
  void keep(const std::pair<std::string, std::string>& metric);

  Duration period_;
  bool ready_ = false;
  RankProgress progress_;
  std::optional<std::uint64_t> furthest_;
  std::uint64_t bad_ = 0;
  std::optional<Instant> told_at_;
  Instant due_ = Instant::never();
};

}  // namespace monarch
