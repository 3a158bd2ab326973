#pragma once

// CallTable: what the callers at a host's door have called and what has not ended of it. Each rank of a call has one
// outcome, told once; after the last of them the call is over. A caller that has too many calls under way, or too much
// in them, is not read until some have ended. A deadline is counted here; where this post does not run, its caller ends
// the call (worker/rank/calls.h).
//
// Where a rank's part of a call is, so that it can be taken back, is kept here and means nothing here.
//
// Thread: a value of the core's; pure.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/limits.h"
#include "transport/base/time.h"
#include "transport/messages/post.h"
#include "worker/core/post/bodies.h"
#include "worker/core/post/door_answers.h"
#include "worker/core/post/post_limits.h"
#include "worker/core/post/post_steps.h"

namespace monarch {

struct CallKey {
  DoorId door;
  std::uint64_t id = 0;
  auto operator<=>(const CallKey&) const = default;
};

// Where a rank's part of a call is: a delivery of this host, or an ask of the line to another one.
struct CallPlace {
  std::optional<HostId> host;  // nothing: this one
  std::uint64_t number = 0;
};

class CallTable {
 public:
  static constexpr Duration kNamedAfter = limits::kNamesMissingEvery;
  static constexpr Duration kNamedTogether = Duration::seconds(5);  // with one that is named: those so much younger

  struct Entered {
    MeshId mesh;
    std::vector<Rank> ranks;
    std::optional<HostId> host;  // of guests: where they are
    bool quiet = false;
    std::optional<Instant> deadline;
    std::uint64_t bytes = 0;
    std::string what;  // "actor.endpoint"
  };
  // A call without a deadline that waits for long.
  struct Waiting {
    CallKey call;
    std::string what;
    MeshId mesh;
    std::vector<Rank> ranks;
    Duration since;
  };

  CallTable(const PostLimits& limits, PostActions& out, DoorAnswers& answers)
      : limits_(limits), out_(out), answers_(answers) {}

  bool knows(const CallKey& key) const { return calls_.contains(key); }
  // It is under way, and nothing but its ranks ends it.
  bool lasts(const CallKey& key) const;
  // Those of a call that have not ended.
  std::vector<CallPlace> places_of(const CallKey& key) const;
  void enter(const CallKey& key, const Entered& entered, Instant now);
  // `place`: of a rank that has not ended yet.
  void asked(const CallKey& key, Rank rank, const CallPlace& place);
  // Of a rank that has ended already it is nothing.
  void end(const CallKey& key, Rank rank, CallOutcome outcome, HeldBody body = {}, Whence whence = Whence::kHere);
  // What is to be taken back of a call that its caller gives up; all that waits ends as kCancelled.
  std::vector<CallPlace> cancel(const CallKey& key);
  // The same of calls whose deadline has passed.
  std::vector<CallPlace> expire(Instant now);
  // The same of all that a caller has called, which has left.
  std::vector<CallPlace> left(DoorId door);
  // Each once: many together, and no more often than every kNamedAfter.
  std::vector<Waiting> take_long_waits(Instant now);
  std::vector<CallKey> take_over() { return std::exchange(over_, {}); }
  // Ranks of calls that have ended, but for those of a caller that has left.
  std::vector<std::pair<CallKey, Rank>> take_ended() { return std::exchange(ended_, {}); }
  Instant next_due() const;

  std::size_t size() const { return calls_.size(); }

 private:
  struct Call {
    MeshId mesh;
    std::map<Rank, CallPlace> waiting;
    bool quiet = false;
    bool has_deadline = false;
    Instant due;  // its deadline, or when it is to be named
    Instant since;
    std::uint64_t bytes = 0;
    std::string what;
  };
  struct Caller {
    std::size_t calls = 0;
    std::uint64_t bytes = 0;
    bool held = false;
  };
  using Calls = std::map<CallKey, Call>;
  using Dues = std::set<std::pair<Instant, CallKey>>;
  Dues& dues_of(const Call& call) { return call.has_deadline ? deadlines_ : unnamed_; }
  std::vector<CallPlace> end_all(Calls::iterator call, OutcomeKind kind, const std::string& text);
  void say(const CallKey& key, const Call& call, Rank rank, CallOutcome outcome, HeldBody body = {},
           Whence whence = Whence::kHere);
  void over(Calls::iterator call);
  void look_at_window(DoorId door);

  const PostLimits limits_;
  PostActions& out_;
  DoorAnswers& answers_;
  Calls calls_;
  std::map<DoorId, Caller> callers_;
  Dues deadlines_;
  Dues unnamed_;
  Instant named_again_;  // nothing is named before
  std::vector<CallKey> over_;
  std::vector<std::pair<CallKey, Rank>> ended_;
};

}  // namespace monarch
