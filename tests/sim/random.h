#pragma once

// Random: the only source of chance in a simulation. Integers throughout, so that a seed gives the same run with every
// compiler and standard library (I24). The generator is splitmix64.
//
// Thread: a value.

#include <cstdint>

#include "transport/base/time.h"

namespace monarch::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E37'79B9'7F4A'7C15U + 0x1234'5678U) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E37'79B9'7F4A'7C15U);
    z = (z ^ (z >> 30U)) * 0xBF58'476D'1CE4'E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D0'49BB'1331'11EBU;
    return z ^ (z >> 31U);
  }
  // In [0, bound).
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  // In [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  bool permille(std::uint64_t p) { return p > 0 && below(1000) < p; }
  Duration between(Duration low, Duration high) {
    return Duration::nanoseconds(between(low.count_nanoseconds(), high.count_nanoseconds()));
  }
  // Short waits more often than long ones: each decade up to `high` is as likely as the next.
  Duration skewed(Duration low, Duration high) {
    Duration top = high;
    while (top > low * 10 && !one_in(3)) top = top / 10;
    return between(low, top < low ? low : top);
  }

 private:
  std::uint64_t state_;
};

}  // namespace monarch::sim
