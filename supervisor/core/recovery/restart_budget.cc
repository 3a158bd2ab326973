#include "supervisor/core/recovery/restart_budget.h"

#include <algorithm>

#include "transport/base/text.h"

namespace monarch {

namespace {

// Where restarts are unlimited, more failures than these tell nothing.
constexpr std::size_t kMostKept = 1'000'000;

std::uint64_t mixed(std::uint64_t value) {  // the finalizer of splitmix64
  value += 0x9E37'79B9'7F4A'7C15ULL;
  value = (value ^ (value >> 30U)) * 0xBF58'476D'1CE4'E5B9ULL;
  value = (value ^ (value >> 27U)) * 0x94D0'49BB'1331'11EBULL;
  return value ^ (value >> 31U);
}

}  // namespace

void forget_older(std::vector<Instant>& spent, Duration window, Instant now) {
  std::erase_if(spent, [&](Instant at) { return now - at >= window; });
  if (spent.size() > kMostKept) spent.erase(spent.begin(), spent.end() - kMostKept);
}

std::uint32_t still_count(const std::vector<Instant>& spent, Duration window, Instant now) {
  return static_cast<std::uint32_t>(
      std::count_if(spent.begin(), spent.end(), [&](Instant at) { return now - at < window; }));
}

Duration backoff_of(const RestartPolicy& policy, std::uint32_t failures, std::uint64_t seed) {
  if (failures == 0) return Duration::zero();
  Duration wait = std::min(policy.backoff, policy.backoff_max);
  for (std::uint32_t i = 1; i < failures && wait > Duration::zero() && wait < policy.backoff_max; ++i) {
    wait = std::min(wait * 2, policy.backoff_max);
  }
  constexpr double kHalf = 0x1p63;
  const double share = (static_cast<double>(mixed(seed)) / kHalf - 1.0) * policy.jitter;  // in ±jitter
  return wait + Duration::nanoseconds(static_cast<std::int64_t>(static_cast<double>(wait.count_nanoseconds()) * share));
}

std::uint64_t jitter_seed(const JobUuid& job, MeshId mesh, GangId gang, std::uint64_t restart) {
  std::uint64_t seed = restart;
  for (const std::uint8_t byte : job.bytes) seed = mixed(seed ^ byte);
  return mixed(mixed(seed ^ mesh.value()) ^ gang.value());
}

std::string spent_text(std::uint32_t number, std::optional<std::uint32_t> limit, Duration window) {
  return limit ? text(number, " of ", *limit, " in ", to_text(window)) : text(number, ", unlimited");
}

}  // namespace monarch
