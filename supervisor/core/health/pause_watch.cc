#include "supervisor/core/health/pause_watch.h"

#include <algorithm>
#include <cstdint>

namespace monarch {

namespace {

// Of what is usual, each word's part: a slower program is what is usual after some dozens of words.
constexpr int kPart = 8;

}  // namespace

std::optional<GangPaused> PauseWatch::heard(MeshId mesh, GangId gang, Generation generation, std::uint64_t step,
                                            Instant at) {
  Known& known = gangs_[{mesh, gang}];
  if (known.generation != generation) {
    known = {.generation = generation, .step = step, .at = at, .usual = known.usual};
    return std::nullopt;
  }
  if (step <= known.step || at <= known.at) return std::nullopt;
  const Duration gap = at - known.at;
  const auto steps = static_cast<std::int64_t>(std::min<std::uint64_t>(step - known.step, 1'000'000));
  const Instant before = known.at;
  known.step = step;
  known.at = at;
  const Duration each = gap / steps;
  if (!known.usual) {
    known.usual = each;
    return std::nullopt;
  }
  const Duration usual = *known.usual;
  known.usual = usual + (std::min(each, usual * 2) - usual) / kPart;
  const Duration left = gap - usual * (steps - 1);
  if (left <= std::max(kShortestPause, usual * kPauseOfSteps)) return std::nullopt;
  return GangPaused{.mesh = mesh, .gang = gang, .generation = generation, .from = before, .to = before + left};
}

}  // namespace monarch
