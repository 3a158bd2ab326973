#include "supervisor/core/health/term_claims.h"

#include <algorithm>

namespace monarch {

bool TermClaims::claim(HostId host, Term term, Instant now) {
  const auto [found, is_new] = claims_.try_emplace(host, Claim{.term = term, .until = now + patience_});
  found->second.term = std::max(found->second.term, term);
  return is_new;
}

std::optional<Term> TermClaims::claimed_by(HostId host) const {
  const auto found = claims_.find(host);
  return found == claims_.end() ? std::nullopt : std::optional(found->second.term);
}

bool TermClaims::are_believed(const std::vector<HostId>& hosts) const {
  const auto claims = static_cast<std::size_t>(
      std::count_if(hosts.begin(), hosts.end(), [this](HostId host) { return claims_.contains(host); }));
  return claims * 2 > hosts.size();
}

std::vector<HostId> jury(const JobState& state) {
  const bool ends = state.phase >= JobPhase::kShuttingDown;
  std::vector<HostId> hosts;
  for (std::uint32_t i = 0; i < state.hosts.size(); ++i) {
    switch (state.hosts[i].phase) {
      case HostPhase::kLaunching:
      case HostPhase::kLaunched:
      case HostPhase::kJoined: hosts.emplace_back(i); break;
      case HostPhase::kDestroying:
      case HostPhase::kEnded:
        if (ends) hosts.emplace_back(i);
        break;
      case HostPhase::kCold:
      case HostPhase::kLost: break;
    }
  }
  return hosts;
}

std::vector<HostId> TermClaims::alone(Instant now) const {
  std::vector<HostId> hosts;
  for (const auto& [host, claim] : claims_) {
    if (claim.until <= now) hosts.push_back(host);
  }
  return hosts;
}

Instant TermClaims::next_deadline() const {
  Instant next = Instant::never();
  for (const auto& [host, claim] : claims_) next = std::min(next, claim.until);
  return next;
}

}  // namespace monarch
