#include "tests/sim/takeover/room.h"

#include <algorithm>
#include <utility>

#include "transport/base/text.h"

namespace monarch::sim::takeover {

namespace {

constexpr Duration kTick = Duration::milliseconds(250);
constexpr Duration kPrepareAgain = Duration::milliseconds(500);
// From the calm to a lease for every rank: a takeover, M + L, a start, and a beat or two.
constexpr Duration kCalm = Duration::seconds(60);

Clock make_clock(Random& random) {
  return Clock(random.between(Duration::seconds(1), Duration::seconds(1'000'000)), random.between(-200, 200));
}

}  // namespace

Room::Room(const RoomOptions& options)
    : options_(options), random_(options.seed ^ 0x7A'0000U), trace_(options.print), nodes_(random_.one_in(4) ? 3 : 2) {
  machines_.resize(static_cast<std::size_t>(random_.between(3, 9)));
  ways_.resize(nodes_.size() * machines_.size());
  ranks_ = static_cast<std::uint32_t>(std::max<std::size_t>(machines_.size() - 2, 1));
  drop_ = random_.one_in(2) ? random_.below(200) : 0;
  duplicate_ = random_.one_in(2) ? random_.below(300) : 0;
  slow_ = random_.one_in(2) ? random_.below(200) : 0;
  fault_gap_ = random_.between(Duration::seconds(3), Duration::seconds(30));
  takeover_gap_ = random_.between(Duration::seconds(12), Duration::seconds(30));
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    nodes_[n].clock = make_clock(random_);
    boot_node(n);
  }
  for (Agent a = 0; a < machines_.size(); ++a) {
    machines_[a].clock = make_clock(random_);
    boot_agent(a);
  }
}

SeedResult Room::run() {
  SeedResult result;
  try {
    take_over(0);
    again(fault_gap_, [this] { fault(); });
    again(takeover_gap_, [this] { random_.one_in(4) ? take_over(random_.below(nodes_.size())) : contest(); });
    const Instant calm = Instant() + options_.faults_for;
    while (!scheduler_.idle() && scheduler_.next() <= calm) scheduler_.run_next();
    heal();
    while (!scheduler_.idle() && scheduler_.next() <= calm + kCalm) scheduler_.run_next();
    check_alive();
  } catch (const Violation& violation) {
    result.passed = false;
    result.label = violation.label;
    result.message = violation.message;
    result.last_lines = trace_.last_lines();
  }
  result.hash = trace_.hash();
  result.counted = takeovers_;
  result.simulated = scheduler_.now().since_boot();
  return result;
}

void Room::again(Duration mean, std::function<void()> what) {
  scheduler_.after(random_.between(Duration::milliseconds(1), mean * 2), [this, mean, what = std::move(what)] {
    if (healed_) return;
    what();
    again(mean, what);
  });
}

// ---- supervisors ----

void Room::boot_node(std::size_t n) {
  nodes_[n].life = std::make_shared<Life>();
  nodes_[n].quorum.reset();
  scheduler_.after(kTick, [this, n, life = nodes_[n].life] { life->timer([this, n] { tick(n); }); });
}

void Room::crash_node(std::size_t n) {
  note("supervisor dies", n);
  nodes_[n].life->end();
  nodes_[n].quorum.reset();
  scheduler_.after(random_.skewed(Duration::milliseconds(100), Duration::seconds(10)), [this, n] { boot_node(n); });
}

// With an epoch that is higher than any it has heard of, and its alone.
void Room::take_over(std::size_t n) {
  Node& node = nodes_[n];
  if (!node.life->alive() || node.life->frozen()) return;
  if (node.quorum && (node.quorum->is_fresh(now(node.clock)) || random_.one_in(2))) return;
  node.seen = (node.seen / nodes_.size() + 1 + random_.below(2)) * nodes_.size() + n;
  node.led = false;
  node.prepared_at = {};
  note("prepares", n, node.seen);
  node.quorum.emplace(Quorum::Options{.wrong = options_.wrong,
                                      .epoch = node.seen,
                                      .agents = static_cast<std::uint32_t>(machines_.size()),
                                      .ranks = ranks_});
}

void Room::tick(std::size_t n) {
  Node& node = nodes_[n];
  scheduler_.after(kTick, [this, n, life = node.life] { life->timer([this, n] { tick(n); }); });
  if (!node.quorum) return;
  const Instant here = now(node.clock);
  if (here - node.prepared_at >= kPrepareAgain) {
    node.prepared_at = here;
    for (const Agent agent : node.quorum->not_promised()) send(n, agent, node.quorum->prepare(here));
  }
  for (const auto& [agent, order] : node.quorum->decide(here)) {
    if (const auto* start = std::get_if<Start>(&order)) {
      note("start", start->rank, agent, start->gen.counter);
      send(n, agent, *start);
    } else {
      send(n, agent, std::get<Kill>(order));
    }
  }
}

void Room::hear(std::size_t n, Agent agent, const ToSupervisor& message) {
  Node& node = nodes_[n];
  if (const auto* refusal = std::get_if<Refusal>(&message)) {
    node.seen = std::max(node.seen, refusal->promised);
    if (!node.quorum || refusal->promised <= node.quorum->epoch()) return;
    note("refused", n, node.quorum->epoch(), refusal->promised);
    node.quorum.reset();
    return;
  }
  if (!node.quorum) return;
  const auto ack = node.quorum->heard(agent, std::get<Report>(message), now(node.clock));
  if (node.quorum->leads() && !std::exchange(node.led, true)) {
    note("leads", n, node.quorum->epoch());
    ++takeovers_;
  }
  if (!ack) return;
  if (!ack->grants.empty()) check_one_decider();
  send(n, agent, *ack);
}

// ---- agents ----

void Room::boot_agent(Agent a) {
  Machine& machine = machines_[a];
  machine.life = std::make_shared<Life>();
  const bool lost = options_.wrong == Wrong::kPromiseLost;
  machine.acceptor.emplace(Acceptor::Options{.wrong = options_.wrong,
                                             .boot = ++machine.boots,
                                             .promised = lost ? machine.promise_before : machine.promise_on_disk});
  machine.alarm = std::make_unique<Alarm>(scheduler_, machine.clock, machine.life, [this, a] {
    machines_[a].acceptor->look_at_clock(now(machines_[a].clock));
    turn_ends(a);
  });
  beat_later(a);
}

void Room::crash_agent(Agent a, Duration away) {
  note("host dies", a);
  machines_[a].life->end();
  machines_[a].acceptor.reset();
  scheduler_.after(away, [this, a] { boot_agent(a); });
}

void Room::hear(Agent a, std::size_t n, const ToAgent& message) {
  Machine& machine = machines_[a];
  Acceptor& acceptor = *machine.acceptor;
  const Instant here = now(machine.clock);
  if (!acceptor.is_lazy()) acceptor.look_at_clock(here);
  const Epoch epoch = std::visit([](const auto& m) { return m.epoch; }, message);
  if (!acceptor.obeys(epoch)) {
    send(a, n, Refusal{acceptor.promised()});
  } else if (const auto* prepare = std::get_if<Prepare>(&message)) {
    if (!acceptor.must_persist(*prepare)) {
      acceptor.repeat_promise(*prepare);
      beat(a);
    } else {
      const Duration sync = random_.skewed(Duration::microseconds(100), Duration::seconds(1));
      send_after(scheduler_, sync, machine.life, [this, a, n, asked = *prepare] { prepared(a, n, asked); });
    }
  } else if (const auto* ack = std::get_if<Ack>(&message)) {
    acceptor.on(*ack, here);
    check_single_lease(a);
  } else if (const auto* start = std::get_if<Start>(&message)) {
    acceptor.on(*start, here);
    check_single_lease(a);
  } else {
    acceptor.on(std::get<Kill>(message));
  }
  turn_ends(a);
}

// The promise is on disk.
void Room::prepared(Agent a, std::size_t n, const Prepare& prepare) {
  Machine& machine = machines_[a];
  const Instant here = now(machine.clock);
  if (!machine.acceptor->is_lazy()) machine.acceptor->look_at_clock(here);
  if (!machine.acceptor->must_persist(prepare)) {
    if (!machine.acceptor->obeys(prepare.epoch)) send(a, n, Refusal{machine.acceptor->promised()});
    return;
  }
  machine.promise_before = machine.promise_on_disk;
  machine.promise_on_disk = std::max(machine.promise_on_disk, prepare.epoch);
  machine.acceptor->promise(prepare, here);
  note("promises", a, prepare.epoch);
  beat(a);
  turn_ends(a);
}

void Room::beat(Agent a) {
  Machine& machine = machines_[a];
  const Instant here = now(machine.clock);
  if (!machine.acceptor->is_lazy()) machine.acceptor->look_at_clock(here);
  if (machine.acceptor->promised() == 0) return;
  const Report report = machine.acceptor->report(here);
  send(a, node_of(report.promised), report);
}

void Room::beat_later(Agent a) {
  const Duration wait = random_.between(kBeat - kBeat / 10, kBeat + kBeat / 10);
  scheduler_.after(wait, [this, a, life = machines_[a].life] {
    if (!life->alive()) return;
    life->timer([this, a] {
      beat(a);
      beat_later(a);
    });
  });
}

void Room::turn_ends(Agent a) {
  if (machines_[a].acceptor->is_lazy()) return;
  Instant next = Instant::never();
  for (const auto& [rank, held] : machines_[a].acceptor->held()) {
    if (held.granted_by != 0) next = std::min(next, held.until);
  }
  machines_[a].alarm->set(next);
}

// ---- the network ----

template <class Deliver>
void Room::carry(const Way& between, int direction, Deliver deliver) {
  if (between.cuts[direction] > 0) return;
  if (!healed_ && random_.permille(drop_)) return;
  const bool slow = !healed_ && random_.permille(slow_);
  const Duration held_up = direction == 1 ? random_.between(Duration::zero(), between.slow_by) : Duration::zero();
  scheduler_.after(
      random_.skewed(Duration::microseconds(100), slow ? Duration::seconds(5) : Duration::milliseconds(20)) + held_up,
      deliver);
  if (healed_ || !random_.permille(duplicate_)) return;
  scheduler_.after(random_.skewed(Duration::milliseconds(1), Duration::seconds(10)), deliver);
}

void Room::send(std::size_t n, Agent a, const ToAgent& message) {
  carry(way(n, a), 0,
        [this, n, a, message] { machines_[a].life->message([this, n, a, message] { hear(a, n, message); }); });
}

void Room::send(Agent a, std::size_t n, const ToSupervisor& message) {
  carry(way(n, a), 1,
        [this, n, a, message] { nodes_[n].life->message([this, n, a, message] { hear(n, a, message); }); });
}

}  // namespace monarch::sim::takeover
