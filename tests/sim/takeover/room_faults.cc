// What befalls the room, and what must hold all the same.

#include <algorithm>

#include "tests/sim/takeover/room.h"
#include "transport/base/text.h"

namespace monarch::sim::takeover {

void Room::fault() {
  const std::size_t n = random_.below(nodes_.size());
  const auto a = static_cast<Agent>(random_.below(machines_.size()));
  Machine& machine = machines_[a];
  switch (random_.below(8)) {
    case 0: return cut(n, random_.one_in(2) ? 1000 : random_.below(1000));
    case 1:
    case 2: return cut(n, 1000 / machines_.size());
    case 3: return freeze(nodes_[n].life, random_.skewed(Duration::milliseconds(500), Duration::seconds(30)));
    case 4: return freeze(machine.life, random_.skewed(Duration::milliseconds(500), Duration::seconds(30)));
    case 5:
      if (nodes_[n].life->alive() && !nodes_[n].life->frozen()) crash_node(n);
      return;
    case 6:
      if (machine.life->alive() && !machine.life->frozen())
        crash_agent(a, random_.skewed(Duration::milliseconds(500), Duration::seconds(20)));
      return;
    default: break;
  }
  if (!machine.acceptor || machine.life->frozen() || machine.acceptor->held().empty()) return;
  const std::uint32_t rank = machine.acceptor->held().begin()->first;
  note("rank dies", rank, a);
  machine.acceptor->rank_died(rank);
  turn_ends(a);
}

// One way or both, to some of its agents or to all of them.
void Room::cut(std::size_t n, std::uint64_t permille) {
  const std::uint64_t which = random_.below(3);
  note("cut", n, permille, which);
  const Duration length = random_.skewed(Duration::milliseconds(500), Duration::seconds(30));
  for (Agent a = 0; a < machines_.size(); ++a) {
    if (random_.permille(permille)) cut_way(n, a, which, length);
  }
}

void Room::cut_way(std::size_t n, Agent a, std::uint64_t which, Duration length) {
  Way& between = way(n, a);
  if (which != 1) ++between.cuts[0];
  if (which != 2) ++between.cuts[1];
  scheduler_.after(length, [this, &between, which] {
    if (healed_) return;
    if (which != 1) --between.cuts[0];
    if (which != 2) --between.cuts[1];
  });
}

void Room::freeze(const LifePtr& life, Duration length) {
  if (!life->alive() || life->frozen()) return;
  note("freezes");
  life->freeze();
  frozen_.push_back(life);
  scheduler_.after(length, [life] {
    if (life->alive() && life->frozen()) life->thaw();
  });
}

// Nothing fails any more; somebody takes over where nobody leads.
void Room::heal() {
  note("healed");
  healed_ = true;
  for (Way& between : ways_) between = {};
  for (const LifePtr& life : frozen_) {
    if (life->alive() && life->frozen()) life->thaw();
  }
  for (Duration wait = Duration::seconds(1); wait < Duration::seconds(40); wait = wait + Duration::seconds(4)) {
    scheduler_.after(wait, [this] {
      const bool led = std::any_of(nodes_.begin(), nodes_.end(), [this](const Node& node) {
        return node.life->alive() && node.quorum && node.quorum->is_fresh(now(node.clock));
      });
      if (!led) take_over(random_.below(nodes_.size()));
    });
  }
}

bool Room::is_valid(const Machine& machine, const Held& held) const {
  return machine.life->alive() && !machine.life->frozen() && held.granted_by != 0 && held.until > now(machine.clock);
}

// I1, at each change of what an agent holds: a lease begins nowhere else.
void Room::check_single_lease(Agent a) {
  for (const auto& [rank, held] : machines_[a].acceptor->held()) {
    if (!is_valid(machines_[a], held)) continue;
    for (Agent b = 0; b < machines_.size(); ++b) {
      if (b == a || !machines_[b].acceptor) continue;
      const auto other = machines_[b].acceptor->held().find(rank);
      if (other == machines_[b].acceptor->held().end() || !is_valid(machines_[b], other->second)) continue;
      throw Violation{"I1", text("rank ", rank, " has leases on hosts ", a, " (", held.gen.epoch, ".", held.gen.counter,
                                 ") and ", b, " (", other->second.gen.epoch, ".", other->second.gen.counter, ")")};
    }
  }
}

// I8. A planted bug has to show in what it does, not here.
void Room::check_one_decider() {
  if (options_.wrong != Wrong::kNothing) return;
  const auto deciders = std::count_if(nodes_.begin(), nodes_.end(), [this](const Node& node) {
    return node.life->alive() && !node.life->frozen() && node.quorum && node.quorum->may_grant(now(node.clock));
  });
  if (deciders > 1) throw Violation{"I8", "two supervisors may grant leases at the same time"};
}

// I15.
void Room::check_alive() {
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    const bool runs = std::any_of(machines_.begin(), machines_.end(), [&](const Machine& machine) {
      if (!machine.acceptor) return false;
      const auto held = machine.acceptor->held().find(rank);
      return held != machine.acceptor->held().end() && is_valid(machine, held->second);
    });
    if (!runs) throw Violation{"I15", text("rank ", rank, " does not run, though all has been well for a minute")};
  }
}

}  // namespace monarch::sim::takeover
