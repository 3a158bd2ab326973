#pragma once

// Backoff: how long to wait before the next try: 100 ms, doubling to 2 s, each made up to a quarter shorter or longer
// so that many peers do not come back at once. Pure: the same seed gives the same waits.
//
// Thread: a value.

#include <cstdint>

#include "transport/base/time.h"

namespace monarch {

class Backoff {
 public:
  explicit Backoff(std::uint64_t seed) : state_(seed) {}
  Duration next();
  void reset();

 private:
  std::uint64_t state_;
  Duration base_ = kFirst;
  static constexpr Duration kFirst = Duration::milliseconds(100);
  static constexpr Duration kLongest = Duration::seconds(2);
};

}  // namespace monarch
