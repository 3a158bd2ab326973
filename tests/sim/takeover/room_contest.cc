// Takeovers in the worst company: another supervisor takes over while the old one lives, reaches hosts that the new one
// does not, is replacing a rank just then, and hears late or not at all that it is over.

#include <algorithm>

#include "tests/sim/takeover/room.h"

namespace monarch::sim::takeover {

void Room::contest() {
  const auto leads = std::find_if(nodes_.begin(), nodes_.end(), [this](const Node& node) {
    return node.life->alive() && node.quorum && node.quorum->is_fresh(now(node.clock));
  });
  if (leads == nodes_.end()) return take_over(random_.below(nodes_.size()));
  const auto leader = static_cast<std::size_t>(leads - nodes_.begin());
  const std::size_t challenger = (leader + 1 + random_.below(nodes_.size() - 1)) % nodes_.size();
  // A lease that ends within M of the takeover is the hardest.
  const Duration lead = random_.one_in(3) ? random_.between(Duration::zero(), Duration::seconds(9))
                                          : random_.between(kLease - kFresh, kLease + kMargin);
  const Duration length = lead + random_.between(Duration::seconds(1), Duration::seconds(16));
  note("contest", leader, challenger);

  std::vector<bool> minority(machines_.size());
  std::size_t room = 1 + random_.below((machines_.size() - 1) / 2);
  for (Agent a = 0; a < machines_.size() && room > 0; ++a) {
    if (!random_.one_in(2)) continue;
    minority[a] = true;
    --room;
    cut_way(challenger, a, 0, length);
  }
  const auto victim = static_cast<Agent>(random_.below(machines_.size()));
  if (!minority[victim]) prepare_loss(leader, victim);
  const Duration hinders = lead + random_.between(Duration::zero(), Duration::seconds(2)) - Duration::seconds(1);
  scheduler_.after(std::max(hinders, Duration::zero()), [this, leader, minority, length] {
    if (!healed_) hinder(leader, minority, length);
  });
  scheduler_.after(lead, [this, challenger] {
    if (!healed_) take_over(challenger);
  });
}

// The leader will soon want to replace what this host has.
void Room::prepare_loss(std::size_t leader, Agent agent) {
  switch (random_.below(4)) {
    case 0:
    case 1: return cut_way(leader, agent, random_.below(3), Duration::seconds(20));
    case 2: return freeze(machines_[agent].life, random_.between(Duration::seconds(3), Duration::seconds(12)));
    default: return;
  }
}

void Room::hinder(std::size_t leader, const std::vector<bool>& minority, Duration length) {
  const std::uint64_t how = random_.below(6);
  const std::uint64_t which = random_.below(3);
  if (how == 0) return freeze(nodes_[leader].life, random_.between(Duration::seconds(1), Duration::seconds(9)));
  const Duration slow_by = random_.between(Duration::seconds(1), Duration::seconds(8));
  for (Agent a = 0; a < machines_.size(); ++a) {
    if (minority[a]) continue;
    if (how == 1) cut_way(leader, a, which, length);
    if (how == 2 && random_.one_in(2)) reboot(a);
    if (how != 3) continue;
    way(leader, a).slow_by = slow_by;
    scheduler_.after(length, [this, leader, a] { way(leader, a).slow_by = {}; });
  }
}

void Room::reboot(Agent agent) {
  if (machines_[agent].life->alive() && !machines_[agent].life->frozen()) {
    crash_agent(agent, random_.between(Duration::milliseconds(300), Duration::seconds(3)));
  }
}

}  // namespace monarch::sim::takeover
