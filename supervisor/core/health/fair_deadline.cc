#include "supervisor/core/health/fair_deadline.h"

#include <algorithm>

#include "transport/base/text.h"

namespace monarch {

std::string late_words(Duration late) {
  if (late == Duration()) return "";
  return text(" (this machine was late by ", to_text(Duration::milliseconds(late.count_milliseconds())),
              " meanwhile, which does not count)");
}

FairDeadline::FairDeadline(Duration limit, Instant now)
    : until_(limit == Duration::forever() ? Instant::never() : now + limit) {
  (void)stall_.turn(now);
}

bool FairDeadline::over(Instant now) {
  if (until_ == Instant::never()) return false;
  if (const auto gap = stall_.turn(now)) {
    until_ = until_ + *gap;
    late_ = late_ + *gap;
  }
  return now >= until_;
}

Instant FairDeadline::look_by(Instant now) const { return std::min(until_, now + OwnStall::kTurn); }

}  // namespace monarch
