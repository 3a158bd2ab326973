#include "tests/sim/durable_account.h"

#include <algorithm>

namespace monarch::sim {

void DurableAccount::appended(const Ticket& ticket, std::uint64_t lsn) {
  const bool known = !appended_.empty() && appended_.rbegin()->second == ticket;
  if (!known) appended_[lsn] = ticket;
}

void DurableAccount::told(const Ticket& ticket) { note(ticket); }

void DurableAccount::recovered(std::uint64_t last_lsn) {
  appended_.erase(appended_.upper_bound(last_lsn), appended_.end());
  for (const auto& [lsn, ticket] : appended_) note(ticket);
  appended_.clear();
}

bool DurableAccount::holds(const Ticket& ticket) const {
  const auto found = newest_.find(ticket.first);
  return found != newest_.end() && found->second >= ticket.second;
}

void DurableAccount::note(const Ticket& ticket) {
  std::uint64_t& newest = newest_[ticket.first];
  newest = std::max(newest, ticket.second);
}

}  // namespace monarch::sim
