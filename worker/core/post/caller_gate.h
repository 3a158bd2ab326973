#pragma once

// CallerGate: whether what another host's post asks in a rank's name is that rank's: the roster has the rank, in that
// start of it, on that host. A start of which this roster knows nothing yet waits until one does, and all that is asked
// in its name behind it; what nobody ever says is refused, and of what a host says no more waits than the limits.
//
// Thread: a value of the core's; pure.

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/time.h"
#include "worker/core/post/peer_lines.h"
#include "worker/core/post/roster_view.h"

namespace monarch {

class CallerGate {
 public:
  static constexpr Duration kRosterPatience = Duration::seconds(5);
  // Of each host, what waits; one more is Busy.
  static constexpr std::size_t kCalls = 1'024;
  static constexpr std::uint64_t kBytes = 64U << 20U;

  struct Refused {
    PeerLines::Ordered ordered;
    OutcomeKind kind = OutcomeKind::kRefused;
    std::string why;
  };

  // The roster outlives it.
  explicit CallerGate(const RosterView& roster) : roster_(roster) {}

  void ask(PeerLines::Ordered&& ordered, Instant now);
  // A roster has come, or time has passed.
  void look(Instant now);
  void take_back(HostId root, AskNumber number);
  // What earlier starts of that host's post have asked nobody waits for.
  void root_passed(HostId root, const PostStart& now);
  // Not later than when something is due.
  Instant next_due() const;
  std::size_t size() const { return waiting_.size(); }

  std::vector<PeerLines::Ordered> take_believed() { return std::exchange(believed_, {}); }
  std::vector<Refused> take_refused() { return std::exchange(refused_, {}); }

 private:
  struct Waiting {
    PeerLines::Ordered ordered;
    Instant due;
  };
  void judge(Waiting&& one, Instant now);
  bool waits(const Waiting& behind) const;
  bool has_room_for(const Waiting& one) const;

  const RosterView& roster_;
  std::deque<Waiting> waiting_;  // in the order in which it was asked
  std::vector<PeerLines::Ordered> believed_;
  std::vector<Refused> refused_;
};

}  // namespace monarch
