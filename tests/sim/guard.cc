#include "tests/sim/guard.h"

#include <csignal>
#include <utility>

#include "tests/sim/checker.h"
#include "tests/sim/supervisor.h"
#include "tests/sim/world.h"
#include "transport/base/limits.h"

namespace monarch::sim {

namespace {

namespace event = keeper_event;
namespace action = keeper_action;

HostId host_of(const Incarnation& key) { return HostId(key.rank.rank.value()); }

}  // namespace

Guard::Guard(World& world)
    : world_(world),
      life_(std::make_shared<Life>()),
      core_(KeeperOptions{.kind = KeeperKind::kGuard,
                          .guarded = {.ping_deadline = limits::kSupervisorPingDeadline, .final_codes = {74, 75}}}),
      alarm_(world.scheduler, world.supervisor_clock, life_, [this] { handle(event::Tick{}); }) {}

Guard::~Guard() { life_->end(); }

void Guard::begin() { handle(event::Tick{}); }

void Guard::terminate(int signal) {
  world_.note("guard told to end");
  world_.checker->stop_requested();
  handle(event::Terminated{signal});
}

Supervisor* Guard::supervisor() {
  return !supervisors_.empty() && supervisors_.back()->alive() ? supervisors_.back().get() : nullptr;
}

void Guard::handle(KeeperEvent happened) {
  if (!life_->alive()) return;
  if (handling_) {
    events_.push_back(std::move(happened));
    return;
  }
  life_->message([this, happened = std::move(happened)]() mutable {
    events_.push_back(std::move(happened));
    if (!handling_) run();
  });
}

void Guard::run() {
  handling_ = true;
  while (!events_.empty() && !core_.exited()) {
    const KeeperEvent happened = std::move(events_.front());
    events_.pop_front();
    const Instant now = world_.supervisor_clock.local(world_.scheduler.now());
    for (const KeeperAction& ordered : core_.step(happened, now)) {
      std::visit([this](const auto& one) { perform(one); }, ordered);
    }
  }
  handling_ = false;
  alarm_.set(core_.next_due());
}

void Guard::hear(FromSupervisor message) {
  send_after(world_.scheduler, kHop, life_, [this, message = std::move(message)] {
    handle(event::GuardedSpoke{});
    if (const auto* pong = std::get_if<KeeperPong>(&message)) return handle(event::GuardedPong{pong->number});
    if (const auto* stop = std::get_if<Stop>(&message)) return handle(*stop);
    if (const auto* shutdown = std::get_if<KeeperShutdown>(&message)) return handle(*shutdown);
    if (const auto* forget = std::get_if<Forget>(&message)) {
      return handle(KeeperForget{.processes = {forget->key}});
    }
    const auto& spawn = std::get<Spawn>(message);
    stashes_[spawn.key] = spawn.stash;
    handle(event::Spawn{spawn.key, {}});
  });
}

void Guard::supervisor_ended(const RankEnd& end) {
  send_after(world_.scheduler, kHop, life_, [this, end] {
    handle(event::GuardedHungUp{});
    handle(event::GuardedExited{end});
  });
}

void Guard::freeze() {
  life_->freeze();
  frozen_ = supervisor();
  if (frozen_ != nullptr) frozen_->freeze();
}

// A supervisor that died in the meantime has a successor by now.
void Guard::thaw() {
  Supervisor* const frozen = std::exchange(frozen_, nullptr);
  life_->thaw();
  if (frozen != nullptr && frozen->alive()) frozen->thaw();
}

void Guard::perform(const action::ForkSpawned& ordered) {
  const Incarnation key = ordered.key;
  Host& host = world_.host(host_of(key));
  Supervisor* launching = supervisor();
  const LifePtr reader = launching != nullptr ? launching->life() : nullptr;
  auto reply_to = [this, key, reader, launching](const BootstrapReply* reply) {
    if (reader == nullptr) return;
    const std::optional<BootstrapReply> said = reply != nullptr ? std::optional(*reply) : std::nullopt;
    send_after(world_.scheduler, kHop, reader, [launching, key, said] { launching->on_reply(host_of(key), said); });
  };
  auto on_ended = [this, key](const RankEnd& end) {
    if (!world_.reachable(host_of(key)) && world_.scenario.remote) return;
    send_after(world_.scheduler, kHop, life_, [this, key, end] { handle(event::Exited{key, end, {}}); });
  };
  handle(event::Forked{key, world_.next_pid()});
  handle(event::Executed{key});
  auto worker = std::make_unique<Worker>(world_, host, stashes_[key], reply_to, on_ended);
  Worker* started = worker.get();
  host.workers.push_back(std::move(worker));
  workers_[key] = started;
  const Duration wait = world_.random.skewed(Duration::milliseconds(1), Duration::milliseconds(50));
  if (host.off) return;
  send_after(world_.scheduler, wait, host.kernel, [started] { started->begin(); });
  if (!world_.mutant(Mutant::kLaunchTwice)) return;
  host.workers.insert(host.workers.begin(),
                      std::make_unique<Worker>(
                          world_, host, stashes_[key], [](const BootstrapReply*) {}, [](const RankEnd&) {}));
  send_after(world_.scheduler, wait, host.kernel, [first = host.workers.front().get()] { first->begin(); });
}

void Guard::kill_worker(const Incarnation& key, int signal) {
  if (signal == SIGCONT) return;
  Host& host = world_.host(host_of(key));
  if (!world_.reachable(host.id)) return;
  Worker* worker = workers_[key];
  if (worker == nullptr) return;
  signal == SIGKILL ? worker->kill() : worker->terminate(signal);
}

Worker* Guard::worker_of(const Incarnation& key) const {
  const auto found = workers_.find(key);
  return found == workers_.end() ? nullptr : found->second;
}

void Guard::perform(const action::KillTree& ordered) { kill_worker(ordered.key, SIGKILL); }

void Guard::perform(const action::CheckTree& ordered) { handle(event::TreeEmpty{ordered.key}); }

void Guard::perform(const action::Report& ordered) {
  if (Supervisor* running = supervisor()) {
    send_after(world_.scheduler, kHop, running->life(),
               [running, report = ordered.report] { running->on_changed(report); });
  }
}

void Guard::perform(const action::ForkGuarded& ordered) {
  world_.note("supervisor", ordered.starts);
  supervisors_.push_back(std::make_unique<Supervisor>(world_));
  handle(event::GuardedForked{world_.next_pid()});
}

void Guard::perform(const action::SignalGuarded& ordered) {
  if (Supervisor* running = supervisor()) {
    send_after(world_.scheduler, kHop, running->life(), [running, n = ordered.number] { running->on_signal(n); });
  }
}

void Guard::perform(const action::KillGuarded&) {
  if (Supervisor* running = supervisor()) running->die(SIGKILL);
}

void Guard::perform(const action::SayHello& ordered) {
  Supervisor* running = supervisor();
  if (running == nullptr) return;
  send_after(world_.scheduler, kHop, running->life(), [running, hello = ordered.hello] { running->on_hello(hello); });
}

void Guard::perform(const action::Ping& ordered) {
  Supervisor* running = supervisor();
  if (running == nullptr) return;
  send_after(world_.scheduler, kHop, running->life(), [this, number = ordered.number] {
    ++steps_;
    hear(KeeperPong{number});
  });
  handle(event::GuardedSteps{steps_});
}

void Guard::perform(const action::KillDescendants&) {
  // What is below this process: with remote hosts only the launcher's own ends.
  if (world_.scenario.remote) return;
  for (const auto& host : world_.hosts) {
    for (const auto& worker : host->workers) {
      if (worker->keeper_alive()) worker->kill();
      if (Daemon* left = worker->daemon()) {
        worker->ranks().kill_everything();
        left->vanish();
      }
    }
  }
}

void Guard::perform(const action::Exit& ordered) {
  life_->end();
  if (Supervisor* running = supervisor()) running->vanish();
  world_.guard_exited(ordered.code);
}

}  // namespace monarch::sim
