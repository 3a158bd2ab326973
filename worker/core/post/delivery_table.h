#pragma once

// DeliveryTable: what the ranks of this host are asked to run, from the moment at which it is to be delivered until its
// one outcome. A delivery belongs to the process of the rank that it was given to, and is never given to another; it
// ends with that process, with the cause that the keeper tells.
//
// Thread: a value of the core's; pure.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/time.h"
#include "transport/messages/post.h"
#include "worker/core/post/bodies.h"
#include "worker/core/post/call_table.h"
#include "worker/core/post/post_limits.h"
#include "worker/core/post/post_steps.h"
#include "worker/core/post/shared_room.h"

namespace monarch {

// What is called, the same for all ranks of a call.
struct CallContent {
  MeshId mesh;
  CallTarget target;
  CallerName caller;
  HeldBody body;
  std::optional<HostId> host = {};  // of guests: where they are, as their caller says
  // Of the body and of the texts beside it, as it counts where there is room for so many. What is too large for other
  // hosts is memory of its lender; there is room for others beside it.
  std::uint64_t bytes() const {
    const std::uint64_t counted = body.bytes() > kFarBodyBytes ? kFarBodyBytes / 2 : body.bytes();
    return counted + target.actor.size() + target.endpoint.size() + target.signature.size();
  }
};
// Owners: the asks and deliveries that a call has become.
using SharedContent = std::shared_ptr<const CallContent>;

// Who waits for a delivery's outcome: a call of this host, or an ask that came by a line.
struct DeliveryOrigin {
  std::optional<CallKey> call;
  HostId root;  // where there is no call of this host's
  PostStart root_start;
  AskNumber number = 0;

  // Of which host it is; nothing: of this one.
  std::optional<HostId> host() const { return call ? std::nullopt : std::optional(root); }
};

struct ActorOfRank {
  RankId rank;
  std::string actor;
  auto operator<=>(const ActorOfRank&) const = default;
};

// What the roster says of a rank.
struct RankStanding {
  std::string down;       // why it is not up; empty: it is, or may be
  bool starting = false;  // for the first time: it is waited for as long as that takes
  std::uint64_t generation = 0;
};

class DeliveryTable {
 public:
  using Number = std::uint64_t;                                            // from 1
  static constexpr Duration kHelloPatience = Duration::seconds(5);         // for a rank that runs and has not come
  static constexpr Duration kCausePatience = Duration::milliseconds(250);  // for the keeper's word on one that left

  struct Done {
    DeliveryOrigin origin;
    RankId rank;
    CallOutcome outcome;
    HeldBody body;
  };

  DeliveryTable(const PostLimits& limits, Bodies& bodies, PostActions& out)
      : limits_(limits), bodies_(bodies), out_(out) {}

  // A rank that serves has come, as that generation. False: a later process of it is, or was, here.
  bool came(DoorId door, const RankId& rank, std::uint64_t generation, std::vector<RankActor> actors);
  void left(DoorId door, Instant now);
  // The same of one that never comes again, for that cause: nothing is kept of it.
  void left_for_good(DoorId door, const std::string& cause);
  // The process of that generation has ended, by its keeper's word.
  void ended(const RankId& rank, std::uint64_t generation, const std::string& cause, Instant now);

  // 0: it has ended already.
  Number deliver(const DeliveryOrigin& origin, const RankId& to, SharedContent content, const RankStanding& standing,
                 Instant now);
  // False: the door says what nobody may say.
  bool reply(DoorId door, PostReply reply);
  // Nobody waits for it any more. It ends all the same, as the rank says.
  void take_back(Number delivery);
  // The same of all that came by the line of a root's earlier starts.
  void root_passed(HostId root, const PostStart& now);
  // A newer roster is here: what it says of each rank that is waited for.
  void look_at_waiting(const std::function<RankStanding(const RankId&)>& standing_of, Instant now);

  // Whom it is to, where that actor has one such delivery at a time; nothing: it has ended, or nobody knows that.
  std::optional<ActorOfRank> target_of(Number delivery) const;

  void tick(Instant now);
  Instant next_due() const { return dues_.empty() ? Instant::never() : dues_.begin()->first; }
  std::vector<Done> take_done() { return std::exchange(done_, {}); }

  std::size_t size() const { return deliveries_.size(); }

 private:
  struct Delivery {
    DeliveryOrigin origin;
    RankId rank;
    SharedContent content;
    std::uint64_t given = 0;  // to the process of that generation; 0: to none yet
    bool taken_back = false;
  };
  struct Ended {
    std::uint64_t generation = 0;
    std::string cause;
  };
  // Which host's call it is; nothing: this one's.
  using Root = std::optional<HostId>;
  struct Served {
    explicit Served(const PostLimits& limits) : room({limits.of_a_rank, limits.rank_bytes}, limits.share) {}
    std::optional<DoorId> door;
    std::uint64_t generation = 0;  // of the process at the door, or of the last that was
    std::vector<RankActor> actors;
    std::set<Number> deliveries;
    SharedRoom<Root> room;                                // for what has not ended
    std::map<std::string, SharedRoom<Root>> actors_room;  // the same, by the actor
    std::optional<Ended> ended;                           // the newest that the keeper has told of
    bool starting = false;                                // something waits for its first start
    Instant hello_due = Instant::never();                 // then what waits for the rank's hello ends
    Instant cause_due =
        Instant::never();               // then what the process had ends without the keeper's word, or its door's end
    Instant listed = Instant::never();  // in dues_
  };
  Served& served_of(const RankId& rank) { return ranks_.try_emplace(rank, limits_).first->second; }
  std::string why_busy(const Served& served, const Root& root, const CallContent& content) const;
  // Why a rank without a connection is not waited for; empty: it is.
  static std::string why_down(const Served& served, const RankStanding& standing);
  // What waits for its hello waits from now on, as long as its standing lets it.
  void await_hello(const RankId& rank, Served& served, const RankStanding& standing, Instant now);
  static std::string cause_of(const Served& served, const std::string& otherwise);
  void give(Number number, Delivery& delivery, Served& served);
  void finish(Number number, CallOutcome outcome, HeldBody body = {});
  // Those that a process was given, or those that wait for one.
  enum class Which : std::uint8_t { kGiven, kWaiting };
  void finish_lost(const RankId& rank, Which which, const std::string& cause);
  void list(const RankId& rank, Served& served);

  const PostLimits limits_;
  Bodies& bodies_;
  PostActions& out_;
  std::map<RankId, Served> ranks_;
  std::map<DoorId, RankId> doors_;
  std::map<Number, Delivery> deliveries_;
  std::set<std::pair<Instant, RankId>> dues_;
  std::vector<Done> done_;
  Number next_ = 1;
};

// Empty: one of `actors` takes it; else why none does, with what was most likely meant.
std::string refusal(const std::vector<RankActor>& actors, const CallTarget& target);

}  // namespace monarch
