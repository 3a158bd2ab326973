// Processes beside those of the job's meshes: what warms a spare, and the ranks of standby gangs, which wait at a gate
// of their own for the place of another.

#include "tests/sim/checker.h"
#include "tests/sim/ranks.h"
#include "tests/sim/world.h"
#include "transport/base/assert.h"

namespace monarch::sim {

namespace {

constexpr Duration kLongestLoading = Duration::seconds(5);
constexpr Duration kLongestLife = Duration::seconds(60);  // of one that dies while it waits
constexpr Duration kForEver = Duration::seconds(100'000);
constexpr std::uint64_t kNeverWarm = 80;  // of a thousand that are to warm a spare

}  // namespace

void Ranks::executed_beside(RankProcess& process) {
  const Incarnation key = process.key;
  tell_(keeper_event::Executed{key});
  if (find(key) == nullptr) return;
  process.standby ? plan_gate(key) : plan_preparation(key);
}

void Ranks::plan_preparation(const Incarnation& key) {
  const bool fails = world_.random.permille(world_.faults().fails);
  const bool never = world_.scenario.faults.any && world_.random.permille(kNeverWarm);
  const Duration wait = never ? kForEver : world_.random.skewed(kSoon, kLongestLoading);
  later(key, wait, [this, fails](RankProcess& p) { end(p, EndKind::kExited, fails ? 1 : 0); });
}

void Ranks::plan_gate(const Incarnation& key) {
  if (world_.random.permille(world_.faults().standby_dies)) {
    later(key, world_.random.skewed(kSoon, kLongestLife), [this](RankProcess& p) { end(p, EndKind::kExited, 3); });
  }
  if (world_.mutant(Mutant::kAtGateAtOnce)) tell_(keeper_event::AtGate{key});
  if (world_.random.permille(world_.faults().never_at_gate)) return;
  world_.scheduler.after(world_.random.skewed(kSoon, kLongestLoading), [this, kernel = host_.kernel, key] {
    kernel->timer([this, key] {
      RankProcess* process = find(key);
      if (process != nullptr && process->alive() && !process->killed) comes_to_gate(*process);
    });
  });
}

void Ranks::comes_to_gate(RankProcess& process) {
  process.gate_due = process.frozen || process.standstill != Standstill::kNone;
  if (process.gate_due) return;
  world_.note("at gate", process.host.value(), process.key.rank.mesh.value(), process.key.rank.rank.value());
  process.at_gate = true;
  tell_(keeper_event::AtGate{process.key});
}

// The process keeps its number and changes its name; it acts as what it has become once that is leased, by its gate.
void Ranks::take_over(const keeper_action::TakeOver& order) {
  auto node = processes_.extract(order.from);
  MONARCH_ASSERT(!node.empty());
  const Incarnation key = order.as.key;
  node.key() = key;
  RankProcess& process = node.mapped();
  process.key = key;
  process.standby = false;
  process.furthest = order.as.gang.furthest;
  ++process.life;
  resume(process, order.as);
  if (process.alive()) process.stage = RankProcess::Stage::kGated;
  process.leased_until = {};
  processes_.insert(std::move(node));
  renamed_[order.from] = key;
  world_.note("takes over", process.host.value(), key.rank.mesh.value(), key.rank.rank.value(), key.generation.counter);
  world_.checker->taken_over(order.from, process);
  if (world_.mutant(Mutant::kTakeOverOpensGate)) open_gate(key);
}

Incarnation Ranks::present_name(const Incarnation& key) const {
  const auto renamed = renamed_.find(key);
  return renamed == renamed_.end() ? key : renamed->second;
}

}  // namespace monarch::sim
