#include "supervisor/core/accounts/requests.h"

#include <algorithm>

#include "supervisor/core/facts/gangs.h"
#include "supervisor/core/facts/hosts.h"

namespace monarch {

namespace {

// After a request that was not granted, until the next one; twice as long each time.
constexpr Duration kFirstPause = Duration::seconds(60);
constexpr Duration kLongestPause = Duration::seconds(1'800);

}  // namespace

void Requests::granted() {
  satisfied();
  mine_.no_request_before = Instant{};
}

// A gang that is parked may wait for more than this one, and gives it back if that is refused again.
void Requests::satisfied() {
  if (!has_parked(basis_)) mine_.refusals = 0;
}

// What waits for it goes on to the next stage.
void Requests::refused() {
  if (!may_request(basis_)) return;  // another one that was asked for together with this one
  Duration pause = kFirstPause;
  for (std::uint32_t i = 0; i < mine_.refusals && pause < kLongestPause; ++i) pause = pause * 2;
  mine_.no_request_before = basis_.now + std::min(pause, kLongestPause);
  ++mine_.refusals;
}

}  // namespace monarch
