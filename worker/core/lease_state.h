#pragma once

// LeaseState: until when an incarnation may run, and when it is killed if nobody renews that. A lease only ever grows:
// who granted a longer one waits for it before it puts something in the rank's place.
//
// The end of an orphan: what was already waited counts, so an incarnation is killed `orphan_ttl` after it last heard of
// a supervisor, but never while a lease lasts. One that never had a lease counts from its fork. Time in which the
// keeper did not run is not waited: who could have renewed the lease may have stood still with it.
//
// Thread: a value.

#include <algorithm>

#include "transport/base/time.h"
#include "transport/messages/rank.h"

namespace monarch {

class LeaseState {
 public:
  LeaseState() = default;
  LeaseState(OrphanPolicy orphan, Duration orphan_ttl, Instant forked_at)
      : orphan_(orphan), orphan_ttl_(orphan_ttl), last_contact_(forked_at) {}

  // False where it grants nothing new: it is over already, or not longer than what is held.
  bool renew(Instant until, Instant now) {
    if (until <= now || (granted_ && until <= until_)) return false;
    granted_ = true;
    until_ = until;
    last_contact_ = now;
    stalled_ = Duration::zero();
    return true;
  }
  // The keeper has not run for so long. The lease is not longer for that.
  void stall(Duration gap) { stalled_ = stalled_ + gap; }

  bool granted() const { return granted_; }
  bool valid(Instant now) const { return granted_ && now < until_; }
  // When hold or stop strikes; never for `run` and before the first grant.
  Instant ends_at() const { return granted_ && orphan_ != OrphanPolicy::kRun ? until_ : Instant::never(); }
  // When what is held, or waits at its gate without ever a lease, is killed. With `stop` nothing is held but for a
  // stall.
  Instant killed_at() const {
    const Instant waited = last_contact_ + orphan_ttl_;
    if (!granted_) return waited + stalled_;
    return (orphan_ == OrphanPolicy::kStop ? until_ : std::max(until_, waited)) + stalled_;
  }

 private:
  OrphanPolicy orphan_ = OrphanPolicy::kHold;
  Duration orphan_ttl_;
  Instant last_contact_;
  Duration stalled_;  // since then
  bool granted_ = false;
  Instant until_;
};

}  // namespace monarch
