#include "transport/zmq/peer_budget.h"

#include <algorithm>

namespace monarch {

namespace {

// Of so many at that rate. No message is so long that this overflows, nor any burst.
Duration time_of(std::uint64_t count, std::uint64_t per_second) {
  constexpr std::uint64_t kNanoseconds = 1'000'000'000;
  const std::uint64_t seconds = count / per_second;
  const std::uint64_t rest = count % per_second * kNanoseconds / per_second;
  return Duration::nanoseconds(static_cast<std::int64_t>(seconds * kNanoseconds + rest));
}

}  // namespace

PeerBudget::Rate::Rate(std::uint64_t each_second, std::uint64_t burst)
    : per_second(each_second), most(each_second == 0 ? Duration::zero() : time_of(burst, each_second)) {}

std::optional<Instant> PeerBudget::Rate::paid(Instant until, std::uint64_t count, Instant now) const {
  if (per_second == 0) return until;
  const Instant next = std::max(until, now) + time_of(count, per_second);
  if (next - now > most) return std::nullopt;
  return next;
}

PeerBudget::PeerBudget(const PeerAllowance& allowance)
    : messages_(allowance.per_second, allowance.burst), bytes_(allowance.bytes_per_second, allowance.bytes_burst) {}

bool PeerBudget::take(std::string_view user_id, std::uint64_t bytes, Instant now) {
  if (messages_.per_second == 0 && bytes_.per_second == 0) return true;
  auto found = paid_until_.find(user_id);
  if (found == paid_until_.end()) found = paid_until_.emplace(user_id, Paid{now, now}).first;
  Paid& paid = found->second;
  const auto of_messages = messages_.paid(paid.messages, 1, now);
  const auto of_bytes = bytes_.paid(paid.bytes, bytes, now);
  if (!of_messages || !of_bytes) return false;
  paid = {.messages = *of_messages, .bytes = *of_bytes};
  return true;
}

}  // namespace monarch
