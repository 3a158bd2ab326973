#include "supervisor/core/health/local_health.h"

#include <algorithm>

namespace monarch {

namespace {

constexpr Duration kLate = Duration::milliseconds(250);
constexpr Duration kSlowDisk = Duration::seconds(1);
// One host that is silent is that host's trouble, however few there are.
constexpr std::size_t kFewestDoubts = 2;
constexpr std::size_t kDoubtsInTen = 1;

}  // namespace

void LocalHealth::ran_late(Duration by, Instant now) {
  if (by > kLate) count(Sign::kLate, now);
}

void LocalHealth::wrote(Duration took, Instant now) {
  if (took > kSlowDisk) count(Sign::kDisk, now);
}

void LocalHealth::stood_still(Instant now) { count(Sign::kStoodStill, now); }

void LocalHealth::doubts(std::size_t suspected, std::size_t hosts) {
  doubts_many_ = suspected >= kFewestDoubts && suspected * 10 > hosts * kDoubtsInTen;
}

void LocalHealth::count(Sign sign, Instant now) {
  well_since_ = now;
  Instant& last = counted_at_[static_cast<std::size_t>(sign)];
  if (last != Instant() && now - last < heartbeat_) return;
  last = now;
  strikes_ = std::min(strikes_ + 1, kMostScore);
}

void LocalHealth::turn(Instant now) {
  if (strikes_ == 0 || now - well_since_ < heartbeat_) return;
  --strikes_;
  well_since_ = now;
}

std::uint32_t LocalHealth::score() const { return std::min(strikes_ + (doubts_many_ ? 1U : 0U), kMostScore); }

Duration LocalHealth::stretched(Duration limit) const {
  return std::min(limit * (1 + static_cast<std::int64_t>(score())), std::max(limit, kLongest));
}

}  // namespace monarch
