#include "supervisor/drill/core/draw.h"

#include <algorithm>
#include <cmath>

namespace monarch::drill {

namespace {

enum class DrawUse : std::uint64_t { kGap = 1, kTarget };

std::uint64_t stirred(std::uint64_t z) {
  z += 0x9E37'79B9'7F4A'7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58'476D'1CE4'E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D0'49BB'1331'11EBU;
  return z ^ (z >> 31U);
}

std::uint64_t drawn(const Draw& draw, DrawUse use) {
  const std::uint64_t place = (std::uint64_t{draw.entry} << 32U) | draw.count;
  return stirred(stirred(stirred(draw.seed) ^ place) ^ static_cast<std::uint64_t>(use));
}

}  // namespace

Duration draw_gap(const Draw& draw, Duration mean) {
  constexpr double kSteps = 9'007'199'254'740'992.0;  // 2^53: what a double tells apart in [0, 1)
  const double uniform = static_cast<double>(drawn(draw, DrawUse::kGap) >> 11U) / kSteps;
  const double gaps = std::min(-std::log1p(-uniform), 10.0);
  return Duration::nanoseconds(static_cast<std::int64_t>(gaps * static_cast<double>(mean.count_nanoseconds())));
}

std::size_t draw_index(const Draw& draw, std::size_t size) { return drawn(draw, DrawUse::kTarget) % size; }

}  // namespace monarch::drill
