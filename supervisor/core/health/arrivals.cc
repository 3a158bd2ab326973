#include "supervisor/core/health/arrivals.h"

#include <algorithm>
#include <cmath>

namespace monarch {

namespace {

// One that keeps time perfectly would else be suspected for the lateness that any busy machine has.
constexpr double kLeastDeviation = 0.05;  // seconds
// Of a normal distribution: beyond so many deviations lies 1e-8 of it.
constexpr double kDeviations = 5.612;

}  // namespace

void Arrivals::add(Duration pause) {
  if (pause < heartbeat_ / 2) return;
  pauses_[next_] = pause;
  next_ = (next_ + 1) % kKept;
  count_ = std::min(count_ + 1, kKept);
  if (count_ < kEnough) return;
  double sum = 0;
  for (std::size_t i = 0; i < count_; ++i) sum += pauses_[i].count_seconds();
  const double mean = sum / static_cast<double>(count_);
  double squares = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const double off = pauses_[i].count_seconds() - mean;
    squares += off * off;
  }
  const double deviation = std::max(kLeastDeviation, std::sqrt(squares / static_cast<double>(count_)));
  const auto after = Duration::nanoseconds(static_cast<std::int64_t>((mean + kDeviations * deviation) * 1e9));
  unlikely_after_ = std::max(after, heartbeat_ * 2);
}

}  // namespace monarch
