#pragma once

// ClaimDesk: answers what processes of hosts wish of idle slots, as their posts report it, and lets go what those have
// who are gone. An answer goes behind the roster that shows the slots as claimed, so that whoever hears it can call
// them; it is sent again as long as a report says that it is waited for.
//
// Whose report lists his owner no more is gone. After a new start of his post, or this supervisor's return, he has time
// to come back to its door; so neither costs anybody his slots. How long he is gone is measured where he is: reports
// may be long on their way.
//
// Thread: the supervisor's loop. Lifetime: within the core's.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/state/claim_state.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/claim.h"
#include "transport/messages/post.h"
#include "transport/messages/roster.h"

namespace monarch {

struct ClaimDeskOptions {
  std::function<void(const CoreEvent&)> decide;
  std::function<void(std::function<void()>)> when_durable;  // of all that is decided so far
  std::function<void(Instant, std::function<void()>)> at;   // calls then
  std::function<Instant()> now;
  std::function<void(HostId, const ClaimAnswer&)> send;
  std::function<const Roster*(HostId)> roster_of;  // what that host's post was sent last; null: not the newest
};

class ClaimDesk {
 public:
  static constexpr Duration kGone = Duration::seconds(1);  // since a post that stands has seen an owner last
  static constexpr Duration kComesBack =
      Duration::seconds(10);                         // to a post that was started again, or to a new supervisor
  static constexpr std::size_t kRefusalsKept = 256;  // of a host, that nobody waits for now

  ClaimDesk(const JobCore& core, ClaimDeskOptions options)
      : core_(core), options_(std::move(options)), posts_(core.hosts().size()) {}

  // What a beat of this host says of its post, and when it was sent by that host's clock.
  void hear(HostId host, const PostReport& report, Instant sent_at);
  // Its post was sent a roster.
  void told(HostId host) { answer(host); }
  // Something happened to the core.
  void changed();

 private:
  struct Post {
    std::uint64_t start = 0;  // 0: nothing was heard of it
    Instant patient_until;    // its host's clock, as in the next
    std::map<ClaimOwner, Instant> absent_since;
    bool lost = false;  // its host is, and its owners are let go in time
  };
  struct Answer {
    ClaimAnswer what;
    ClaimId claim;            // 0: none, or it is let go
    std::uint64_t asked = 0;  // which decision it is: a wish that is said anew is decided about anew
    bool is_durable = false;
    bool is_sent = false;  // or nobody waits for it
    Instant waited_for;    // when a report said so last
  };
  using Key = std::pair<ClaimHolder, std::uint64_t>;  // of a wish

  void forget_answers(HostId host, const std::set<Key>& waited_for);
  void decide_about(HostId host, const PostWish& wish);
  void claim(const ClaimHolder& holder, const PostWish& wish, Answer& answer);
  void let_go(const ClaimHolder& holder, const PostWish& wish);
  void drop_gone(HostId host, const PostReport& report, Instant sent_at);
  void drop_lost(HostId host);
  void answer(HostId host);
  bool shows(const Roster& roster, ClaimId claim) const;
  template <class Which>
  std::vector<ClaimId> claims_of(HostId host, const Which& which) const;

  const JobCore& core_;
  ClaimDeskOptions options_;
  std::vector<Post> posts_;        // by HostId
  std::map<Key, Answer> answers_;  // of wishes that posts report, and refusals of a while
  std::uint64_t asked_ = 0;        // the last
};

}  // namespace monarch
