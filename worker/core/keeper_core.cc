#include "worker/core/keeper_core.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/limits.h"

namespace monarch {

namespace {

namespace event = keeper_event;
namespace action = keeper_action;

// A step that comes this late was late because we did not run.
constexpr Duration kStall = Duration::milliseconds(500);
constexpr std::size_t kEndedKeptPerRank = 4;  // older ones are forgotten without having been asked for
constexpr std::size_t kPortsPerReservation = 1024;
constexpr std::size_t kGpusPerReservation = 1024;

}  // namespace

KeeperActions KeeperCore::step(const KeeperEvent& event, Instant now) {
  KeeperActions actions;
  if (exited_) return actions;
  absorb_stall(now);
  for (auto& [key, incarnation] : incarnations_) incarnation.enforce_lease(now, actions);
  std::visit([&](const auto& value) { on(value, now, actions); }, event);
  end_held(now, actions);
  for (auto& [key, incarnation] : incarnations_) incarnation.tick(now, actions);
  guarded_.tick(now, actions);
  release_ports(actions);
  finish(now, actions);
  expected_ = std::max(now, next_due());
  return actions;
}

Instant KeeperCore::next_due() const {
  Instant due = guarded_.next_due();
  for (const auto& [key, incarnation] : incarnations_)
    due = std::min({due, incarnation.next_due(), held_until(incarnation)});
  return due;
}

void KeeperCore::absorb_stall(Instant now) {
  if (!expected_ || now <= *expected_ + kStall) return;
  const Duration gap = now - *expected_;
  for (auto& [key, incarnation] : incarnations_) incarnation.extend_deadlines(gap);
  guarded_.extend_deadlines(gap);
}

IncarnationState* KeeperCore::find(const Incarnation& key) {
  const auto found = incarnations_.find(key);
  return found == incarnations_.end() ? nullptr : &found->second;
}

bool KeeperCore::admit(const Incarnation& key, KeeperActions& actions) {
  const auto floor = floors_.find(key.rank);
  // Repeated, or stopped before it came: said and done.
  if (floor != floors_.end() && key.generation <= floor->second) return false;
  if (exit_code_) {
    actions.emplace_back(action::Refused{key, "this keeper is ending"});
    return false;
  }
  std::size_t kept = 0;
  const auto first = incarnations_.lower_bound(Incarnation{key.rank, Generation{}});
  for (auto incarnation = first; incarnation != incarnations_.end() && incarnation->first.rank == key.rank;
       ++incarnation, ++kept) {
    if (incarnation->second.ended()) continue;
    actions.emplace_back(action::Refused{key, "an earlier generation is not known to be gone"});  // I21
    return false;
  }
  if (kept >= kEndedKeptPerRank) {
    actions.emplace_back(action::Drop{first->first});
    incarnations_.erase(first);
  }
  floors_[key.rank] = key.generation;
  MONARCH_ASSERT_BECAUSE(!incarnations_.contains(key), "I4: one process per rank and generation");
  return true;
}

void KeeperCore::on(const Reserve& order, Instant /*now*/, KeeperActions& actions) {
  if (order.count > kPortsPerReservation || order.fixed.size() > kPortsPerReservation - order.count ||
      order.spared.size() > kPortsPerReservation || order.gpus.size() > kGpusPerReservation) {
    actions.emplace_back(action::RefuseReservation{order, "no more than 1024 ports and GPUs can be reserved at once"});
    return;
  }
  if (exit_code_)
    return;  // a refusal would say that the host lacks something; what is to be known is its end, which is told soon
  Reservations& ports = ports_[Gang{order.mesh, order.gang}];
  if (order.generation < ports.newest) {
    actions.emplace_back(action::RefuseReservation{order, "a later generation came"});
    return;
  }
  if (order.generation == ports.newest && !ports.held.contains(order.generation)) {
    actions.emplace_back(action::RefuseReservation{order, "this generation has ended"});
    return;
  }
  ports.newest = order.generation;
  ports.held.emplace(order.generation, false);
  actions.emplace_back(action::HoldReservation{order});
}

void KeeperCore::on(const Start& order, Instant now, KeeperActions& actions) {
  Start gang = order;
  gang.ranks.clear();
  for (const RankStart& rank : order.ranks) {
    const Incarnation key{rank.rank, order.generation};
    if (!admit(key, actions)) continue;
    incarnations_.emplace(key, IncarnationState(RankStateOptions{.key = key,
                                                                 .gated = true,
                                                                 .mesh = order.mesh,
                                                                 .gang = order.gang,
                                                                 .orphan = order.orphan,
                                                                 .orphan_ttl = order.orphan_ttl,
                                                                 .stop_signal = order.stop_signal,
                                                                 .stop_grace = order.stop_grace,
                                                                 .signal_to = order.signal_to,
                                                                 .ready = order.ready},
                                                now));
    action::ForkRank fork{.key = key, .gang = gang, .own = rank};
    if (rank.program.empty()) fork.own.program = order.program;
    if (rank.workdir.empty()) fork.own.workdir = order.workdir;
    if (order.ready != ReadyKind::kTcp) fork.own.ready_port = 0;
    if (!rank.standby || !take_over(*rank.standby, fork, now, actions)) actions.emplace_back(std::move(fork));
    const auto ports = ports_.find(Gang{order.mesh, order.gang});
    if (ports == ports_.end()) continue;
    if (const auto held = ports->second.held.find(order.generation); held != ports->second.held.end()) {
      held->second = true;
    }
  }
}

void KeeperCore::on(const event::Spawn& order, Instant now, KeeperActions& actions) {
  if (!admit(order.key, actions)) return;
  incarnations_.emplace(order.key, IncarnationState(RankStateOptions{.key = order.key,
                                                                     .gated = false,
                                                                     .mesh = order.key.rank.mesh,
                                                                     .gang = {},
                                                                     .orphan = OrphanPolicy::kRun,
                                                                     .orphan_ttl = Duration::forever(),
                                                                     .stop_signal = SIGTERM,
                                                                     .stop_grace = limits::kKillDeadline,
                                                                     .kill_deadline = limits::kKillDeadline +
                                                                                      order.spawn.memory_patience},
                                                    now));
  actions.emplace_back(action::ForkSpawned{order.key, order.spawn});
}

void KeeperCore::on(const Stop& order, Instant now, KeeperActions& actions) {
  for (const RankId rank : order.ranks) {
    Generation& floor = floors_[rank];
    const bool unheard_of = floor < order.generation;
    floor = std::max(floor, order.generation);
    for (auto incarnation = incarnations_.lower_bound(Incarnation{rank, Generation{}});
         incarnation != incarnations_.end() && incarnation->first <= Incarnation{rank, order.generation};
         ++incarnation) {
      incarnation->second.stop({order.signal, order.grace}, now, actions);
    }
    if (unheard_of) stopped_before_start({rank, order.generation}, now, actions);
  }
}

void KeeperCore::stopped_before_start(const Incarnation& key, Instant now, KeeperActions& actions) {
  if (options_.kind != KeeperKind::kWorker || key.generation.term == Term{} || key.generation.counter == 0) return;
  const auto first = incarnations_.lower_bound(Incarnation{key.rank, Generation{}});
  for (auto incarnation = first; incarnation != incarnations_.end() && incarnation->first.rank == key.rank;
       ++incarnation) {
    if (!incarnation->second.ended()) return;  // I21: only its end says that nothing of this rank runs here
  }
  // One per rank: whoever stops a later generation has heard of the earlier one's end, or no longer asks.
  for (auto incarnation = first; incarnation != incarnations_.end() && incarnation->first.rank == key.rank;) {
    incarnation = incarnation->second.never_started() ? incarnations_.erase(incarnation) : std::next(incarnation);
  }
  IncarnationState incarnation(
      RankStateOptions{.key = key, .mesh = key.rank.mesh, .gang = {}, .orphan_ttl = {}, .stop_grace = {}}, now);
  incarnation.never_start(now, actions);
  incarnations_.emplace(key, std::move(incarnation));
}

void KeeperCore::on(const Signal& order, Instant /*now*/, KeeperActions& actions) {
  for (const RankId rank : order.ranks) {
    if (const IncarnationState* incarnation = find({rank, order.generation}))
      incarnation->signal(order.number, order.to, actions);
  }
}

void KeeperCore::on(const Tell& order, Instant /*now*/, KeeperActions& actions) {
  for (const RankId rank : order.ranks) {
    if (IncarnationState* incarnation = find({rank, order.generation})) incarnation->tell(order.json, actions);
  }
}

void KeeperCore::on(const KeeperReady& event, Instant /*now*/, KeeperActions& actions) {
  if (IncarnationState* incarnation = find(event.process)) incarnation->accepts_connections(actions);
}

void KeeperCore::on(const event::Spoke& event, Instant /*now*/, KeeperActions& actions) {
  if (IncarnationState* incarnation = find(event.key)) incarnation->spoke(event, actions);
}

void KeeperCore::on(const event::Stood& event, Instant /*now*/, KeeperActions& actions) {
  if (IncarnationState* incarnation = find(event.key)) incarnation->stood(event.standstill, actions);
}

void KeeperCore::on(const KeeperLease& lease, Instant now, KeeperActions& actions) {
  for (const Incarnation& key : lease.processes) {
    if (IncarnationState* incarnation = find(key)) incarnation->lease(lease.until, now, actions);
  }
}

void KeeperCore::on(const KeeperForget& order, Instant /*now*/, KeeperActions& actions) {
  for (const Incarnation& key : order.processes) {
    const IncarnationState* incarnation = find(key);
    if (incarnation == nullptr || !incarnation->ended()) continue;
    actions.emplace_back(action::Drop{key});
    incarnations_.erase(key);
  }
}

void KeeperCore::on(const event::Forked& event, Instant now, KeeperActions& actions) {
  IncarnationState* incarnation = find(event.key);
  if (incarnation == nullptr) return;
  if (incarnation->options().gated) actions.emplace_back(action::Pipes{event.key});
  incarnation->forked(event.pid, now, actions);
}

void KeeperCore::on(const event::ForkFailed& event, Instant now, KeeperActions& actions) {
  if (IncarnationState* incarnation = find(event.key)) incarnation->fork_failed(event, now, actions);
}

void KeeperCore::on(const event::Executed& event, Instant /*now*/, KeeperActions& actions) {
  if (IncarnationState* incarnation = find(event.key)) incarnation->executed(actions);
}

void KeeperCore::on(const event::ExecFailed& event, Instant /*now*/, KeeperActions& /*actions*/) {
  if (IncarnationState* incarnation = find(event.key)) incarnation->exec_failed(event);
}

void KeeperCore::on(const event::Exited& event, Instant now, KeeperActions& actions) {
  // The kernel tells of exits in their order, but a late turn finds several at one `now`: which came first must not be
  // lost.
  last_exit_ = std::max(now, last_exit_ + Duration::nanoseconds(1));
  for (const Incarnation& other : event.ending) {
    if (IncarnationState* incarnation = find(other)) incarnation->ending(last_exit_, actions);
  }
  if (IncarnationState* incarnation = find(event.key)) incarnation->exited(event.end, last_exit_, actions);
}

void KeeperCore::on(const event::GroupTold& event, Instant /*now*/, KeeperActions& /*actions*/) {
  if (IncarnationState* incarnation = find(event.key)) incarnation->group_told();
}

void KeeperCore::on(const event::TreeEmpty& event, Instant /*now*/, KeeperActions& actions) {
  if (IncarnationState* incarnation = find(event.key)) incarnation->tree_empty(actions);
}

void KeeperCore::on(const event::TreeBusy& event, Instant now, KeeperActions& actions) {
  if (IncarnationState* incarnation = find(event.key)) incarnation->tree_busy(event.own, now, actions);
}

void KeeperCore::on(const event::GuardedForked& /*event*/, Instant now, KeeperActions& actions) {
  guarded_.forked(now);
  say_hello(actions);
}

void KeeperCore::on(const event::GuardedForkFailed& event, Instant now, KeeperActions& actions) {
  RankEnd end;
  end.kind = EndKind::kNotExecuted;
  end.value = event.error;
  guarded_ended(end, now, actions);
}

void KeeperCore::on(const event::GuardedSpoke& /*event*/, Instant now, KeeperActions& /*actions*/) {
  guarded_.spoke(now);
}

void KeeperCore::on(const event::GuardedPong& /*event*/, Instant now, KeeperActions& /*actions*/) {
  guarded_.pong(now);
}

void KeeperCore::on(const event::GuardedSteps& event, Instant now, KeeperActions& /*actions*/) {
  guarded_.stepped(event.done, now);
}

void KeeperCore::on(const event::GuardedExited& event, Instant now, KeeperActions& actions) {
  guarded_ended(event.end, now, actions);
}

void KeeperCore::on(const event::GuardedHungUp& /*event*/, Instant now, KeeperActions& /*actions*/) {
  guarded_.hung_up(now);
}

void KeeperCore::say_hello(KeeperActions& actions) const {
  action::SayHello hello;
  hello.hello.starts = guarded_.starts();
  hello.hello.warnings = warnings_;
  for (const auto& [key, incarnation] : incarnations_) {
    if (incarnation.options().gated) {
      hello.hello.ranks.push_back(incarnation.report());
    } else if (!incarnation.ended()) {
      hello.hello.spawned.push_back(key.rank);
    }
  }
  actions.emplace_back(std::move(hello));
  for (const auto& [key, incarnation] : incarnations_) {
    if (incarnation.options().gated) {
      actions.emplace_back(action::Pipes{key});
    } else {
      actions.emplace_back(action::Report{incarnation.report()});
    }
  }
}

// A reservation lives until its ranks have ended; one whose ranks never came, until a later generation is reserved.
void KeeperCore::release_ports(KeeperActions& actions) {
  for (auto& [gang, ports] : ports_) {
    for (auto held = ports.held.begin(); held != ports.held.end();) {
      const auto& [generation, started] = *held;
      const bool live = std::any_of(
          incarnations_.begin(), incarnations_.end(), [&gang = gang, generation = generation](const auto& s) {
            return s.first.generation == generation && s.second.options().gated && !s.second.ended() &&
                   s.second.options().mesh == gang.mesh && s.second.options().gang == gang.gang;
          });
      if (live || (!started && generation == ports.newest)) {
        ++held;
        continue;
      }
      actions.emplace_back(action::ReleaseReservation{gang.mesh, gang.gang, generation});
      held = ports.held.erase(held);
    }
  }
}

}  // namespace monarch
