#include "worker/core/post/wait_rings.h"

namespace monarch {

std::vector<ActorOfRank> WaitRings::begin(const CallKey& call, const Waiter& waiter, const DeliveriesOf& deliveries_of,
                                          const TargetOf& target_of) {
  end(call);
  waits_.emplace(call, waiter);
  of_[waiter.who].insert(call);
  Search search{.to = waiter.who, .deliveries_of = deliveries_of, .target_of = target_of, .seen = {}, .way = {}};
  search.seen.insert(waiter.who);
  search.way.push_back(waiter.who);
  if (!goes_by(call, search)) return {};  // his other calls were looked at when he began to wait for them
  end(call);
  return search.way;
}

// Whether the delivery is not over before the actor waits no more.
bool WaitRings::is_stuck(const ActorOfRank& actor, DeliveryTable::Number delivery) const {
  const auto waits = of_.find(actor);
  if (waits == of_.end()) return false;
  return waits_.at(*waits->second.begin()).present <= delivery;
}

bool WaitRings::find_way(const ActorOfRank& from, Search& search) const {
  if (!search.seen.insert(from).second) return false;
  const auto waits = of_.find(from);
  if (waits == of_.end()) return false;
  search.way.push_back(from);
  for (const CallKey& call : waits->second) {
    if (goes_by(call, search)) return true;
  }
  search.way.pop_back();
  return false;
}

bool WaitRings::goes_by(const CallKey& call, Search& search) const {
  for (const DeliveryTable::Number delivery : search.deliveries_of(call)) {
    const auto target = search.target_of(delivery);
    if (!target || !is_stuck(*target, delivery)) continue;
    if (*target == search.to || find_way(*target, search)) return true;
  }
  return false;
}

void WaitRings::end(const CallKey& call) {
  const auto wait = waits_.find(call);
  if (wait != waits_.end()) erase(wait);
}

void WaitRings::left(DoorId door) {
  for (auto wait = waits_.lower_bound({door, 0}); wait != waits_.end() && wait->first.door == door;) erase(wait++);
}

void WaitRings::ended(const RankId& rank, std::uint64_t generation) {
  for (auto wait = waits_.begin(); wait != waits_.end();) {
    const bool gone = wait->second.who.rank == rank && wait->second.generation <= generation;
    gone ? erase(wait++) : void(++wait);
  }
}

void WaitRings::erase(std::map<CallKey, Waiter>::iterator wait) {
  const auto of = of_.find(wait->second.who);
  of->second.erase(wait->first);
  if (of->second.empty()) of_.erase(of);
  waits_.erase(wait);
}

}  // namespace monarch
