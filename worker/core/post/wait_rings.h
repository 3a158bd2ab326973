#pragma once

// WaitRings: which actors of this host's ranks wait for which calls, and with nothing else until those are over. A ring
// of them would wait for ever, and is known here before anybody waits in it.
//
// Certain is only what cannot end otherwise: a call without a deadline, and of it a delivery of an endpoint that is not
// concurrent, which its actor has not begun, or has begun and is waiting in. One that it began earlier and left open (a
// Reply, a coroutine) may be answered from elsewhere, and closes no ring.
//
// Thread: a value of the core's; pure.

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/ids.h"
#include "worker/core/post/call_table.h"
#include "worker/core/post/delivery_table.h"

namespace monarch {

class WaitRings {
 public:
  struct Waiter {
    ActorOfRank who;
    std::uint64_t generation = 0;       // of his rank
    DeliveryTable::Number present = 0;  // what it runs; 0: it is being made
  };
  // The deliveries of this host that a call waits for.
  using DeliveriesOf = std::function<std::vector<DeliveryTable::Number>(const CallKey&)>;
  // Whom a delivery is to; nothing: its endpoint is concurrent, or it has ended.
  using TargetOf = std::function<std::optional<ActorOfRank>(DeliveryTable::Number)>;

  // The ring that this closes, from the waiter on, whom it does not name again at its end; then he does not wait.
  // Empty: he waits.
  std::vector<ActorOfRank> begin(const CallKey& call, const Waiter& waiter, const DeliveriesOf& deliveries_of,
                                 const TargetOf& target_of);
  // He does not wait any more, or the call is over.
  void end(const CallKey& call);
  // The same of all calls of that door.
  void left(DoorId door);
  // The same of all that waited in that process of the rank, and in earlier ones.
  void ended(const RankId& rank, std::uint64_t generation);
  // Who waits for that call; nullptr: no actor is known to.
  const Waiter* find(const CallKey& call) const {
    const auto wait = waits_.find(call);
    return wait == waits_.end() ? nullptr : &wait->second;
  }
  std::size_t size() const { return waits_.size(); }

 private:
  struct Search {
    const ActorOfRank& to;
    const DeliveriesOf& deliveries_of;
    const TargetOf& target_of;
    std::set<ActorOfRank> seen;
    std::vector<ActorOfRank> way;
  };
  void erase(std::map<CallKey, Waiter>::iterator wait);
  bool find_way(const ActorOfRank& from, Search& search) const;
  bool goes_by(const CallKey& call, Search& search) const;
  bool is_stuck(const ActorOfRank& actor, DeliveryTable::Number delivery) const;

  std::map<CallKey, Waiter> waits_;
  std::map<ActorOfRank, std::set<CallKey>> of_;
};

}  // namespace monarch
