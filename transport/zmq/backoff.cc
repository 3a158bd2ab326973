#include "transport/zmq/backoff.h"

#include <algorithm>

namespace monarch {

namespace {

// splitmix64 (Steele, Lea, Flood 2014): one step.
std::uint64_t draw(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
  return mixed ^ (mixed >> 31U);
}

}  // namespace

Duration Backoff::next() {
  const Duration quarter = base_ / 4;
  const auto spread = static_cast<std::uint64_t>(quarter.count_nanoseconds()) * 2 + 1;
  const Duration wait = base_ - quarter + Duration::nanoseconds(static_cast<std::int64_t>(draw(state_) % spread));
  base_ = std::min(base_ * 2, kLongest);
  return wait;
}

void Backoff::reset() { base_ = kFirst; }

}  // namespace monarch
