#pragma once

// TermClaims: hosts that speak for a later term than this supervisor's. Each host promises terms, and only ever higher
// ones, so where somebody else has taken the job by force, out of our sight, all of its hosts say so: more than half of
// them are believed. A host that stays alone with it lies, or is not what it was: it is to be cut off.
//
// Thread: one.

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "supervisor/core/state/job_state.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"

namespace monarch {

// Whose claims count: hosts that are connected or on their way, so that the first to come is not most of them; of a job
// that is being shut down all that were ever of it, so that the last to leave is not.
std::vector<HostId> jury(const JobState& state);

class TermClaims {
 public:
  // `patience`: how long the others have to say the same.
  explicit TermClaims(Duration patience) : patience_(patience) {}

  // A message of this host was of that term. True: it is its first.
  bool claim(HostId host, Term term, Instant now);
  // Its worker ended, or another was launched there.
  void forget(HostId host) { claims_.erase(host); }
  // Nothing: it has none.
  std::optional<Term> claimed_by(HostId host) const;

  // More than half of these hosts, which are all that could have heard of it, have a claim.
  bool are_believed(const std::vector<HostId>& hosts) const;
  // Hosts whose time is over; each is named until it is forgotten.
  std::vector<HostId> alone(Instant now) const;
  Instant next_deadline() const;

 private:
  struct Claim {
    Term term;
    Instant until;
  };
  Duration patience_;
  std::map<HostId, Claim> claims_;
};

}  // namespace monarch
