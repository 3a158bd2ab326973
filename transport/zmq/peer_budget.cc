#include "transport/zmq/peer_budget.h"

#include <algorithm>

namespace monarch {

PeerBudget::PeerBudget(const PeerAllowance& allowance) {
  if (allowance.per_second == 0) return;
  cost_ = Duration::nanoseconds(1'000'000'000 / allowance.per_second);
  most_ = cost_ * static_cast<std::int64_t>(allowance.burst);
}

// The generic cell rate algorithm (ITU-T I.371): one instant per peer is all that a token bucket needs.
bool PeerBudget::take(std::string_view user_id, Instant now) {
  if (cost_ == Duration::zero()) return true;
  auto found = paid_until_.find(user_id);
  if (found == paid_until_.end()) found = paid_until_.emplace(user_id, now).first;
  const Instant until = std::max(found->second, now) + cost_;
  if (until - now > most_) return false;
  found->second = until;
  return true;
}

}  // namespace monarch
