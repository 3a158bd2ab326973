#include "tests/sim/worker.h"

#include <csignal>
#include <utility>

#include "tests/sim/checker.h"
#include "tests/sim/world.h"

namespace monarch::sim {

namespace {

namespace event = keeper_event;
namespace action = keeper_action;

}  // namespace

Worker::Worker(World& world, Host& host, DaemonStash stash, ReplyTo reply_to, OnEnded on_ended)
    : world_(world),
      host_(host),
      life_(std::make_shared<Life>()),
      core_(KeeperOptions{.kind = KeeperKind::kWorker, .guarded = {}}),
      ranks_(world, host, [this](KeeperEvent told) { handle(std::move(told)); }),
      alarm_(world.scheduler, host.clock, life_, [this] { handle(event::Tick{}); }),
      stash_(std::move(stash)),
      reply_to_(std::move(reply_to)),
      on_ended_(std::move(on_ended)),
      incarnation_(world.random.next()),
      pid_(world.next_pid()) {}

void Worker::begin() {
  world_.note("worker", host_.id.value());
  handle(event::Tick{});
}

void Worker::handle(KeeperEvent happened) {
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

void Worker::run() {
  handling_ = true;
  while (!events_.empty() && !core_.exited() && life_->alive()) {
    KeeperEvent happened = std::move(events_.front());
    events_.pop_front();
    if (auto* exited = std::get_if<event::Exited>(&happened)) exited->key = ranks_.present_name(exited->key);
    for (const KeeperAction& ordered : core_.step(happened, host_.now())) {
      std::visit([this](const auto& one) { perform(one); }, ordered);
    }
  }
  handling_ = false;
  alarm_.set(core_.next_due());
}

void Worker::terminate(int signal) { handle(event::Terminated{signal}); }

void Worker::kill() {
  if (!life_->alive()) return;
  world_.note("keeper killed", host_.id.value());
  RankEnd killed;
  killed.kind = EndKind::kSignaled;
  killed.value = SIGKILL;
  end(killed);
}

void Worker::end(RankEnd how) {
  life_->end();
  ranks_.parent_died();
  if (Daemon* left = daemon()) {
    left->hear(Daemon::KeeperGone{});
  } else {
    // Both gone at once: what the ranks forked is found by the launcher's sweep, or by `doctor`.
    ranks_.kill_everything();
  }
  if (reply_to_) std::exchange(reply_to_, nullptr)(nullptr);
  on_ended_(how);
}

void Worker::power_off() {
  life_->end();
  ranks_.power_off();
  if (Daemon* left = daemon()) left->vanish();
}

void Worker::freeze() {
  if (std::exchange(frozen_, true)) return;
  frozen_at_ = host_.now();
  life_->freeze();
  frozen_daemon_ = daemon();
  if (frozen_daemon_ != nullptr) frozen_daemon_->freeze();
}

// One that was launched while its machine was frozen has nothing to thaw, nor has a daemon of after the thaw.
void Worker::thaw() {
  if (!std::exchange(frozen_, false)) return;
  Daemon* const frozen = std::exchange(frozen_daemon_, nullptr);
  // A planted bug: it goes through the time that it did not run in as if it had.
  for (Instant t = frozen_at_; world_.mutant(Mutant::kWakeUnaware) && t < host_.now() && life_->alive();
       t = t + Duration::milliseconds(400)) {
    for (const KeeperAction& ordered : core_.step(event::Tick{}, t)) {
      std::visit([this](const auto& one) { perform(one); }, ordered);
    }
  }
  life_->thaw();
  if (frozen != nullptr && frozen->alive()) frozen->thaw();
}

void Worker::hear(KeeperEvent said) {
  if (auto* lease = std::get_if<KeeperLease>(&said); lease != nullptr && world_.mutant(Mutant::kIgnoreLeaseEnd)) {
    lease->until = lease->until + Duration::seconds(100'000);
  }
  if (auto* start = std::get_if<Start>(&said); start != nullptr && world_.mutant(Mutant::kForkBesideStandby)) {
    for (RankStart& rank : start->ranks) rank.standby.reset();
  }
  send_after(world_.scheduler, kHop, life_, [this, said = std::move(said)]() mutable {
    handle(event::GuardedSpoke{});
    handle(std::move(said));
  });
}

void Worker::hear_stash(DaemonStash stash) {
  send_after(world_.scheduler, kHop, life_, [this, stash = std::move(stash)] {
    stash_ = stash;
    handle(event::GuardedSpoke{});
  });
}

void Worker::hear_reply(const BootstrapReply& reply) {
  if (reply_to_) std::exchange(reply_to_, nullptr)(&reply);
}

void Worker::daemon_ended(const RankEnd& how) {
  if (reply_to_) std::exchange(reply_to_, nullptr)(nullptr);
  send_after(world_.scheduler, kHop, life_, [this, how] {
    handle(event::GuardedHungUp{});
    handle(event::GuardedExited{how});
  });
}

void Worker::tell_daemon(Daemon::FromKeeper message) {
  if (Daemon* running = daemon()) running->hear(std::move(message));
}

void Worker::perform(const action::Report& ordered) {
  RankReport report = ordered.report;
  if (world_.mutant(Mutant::kBlindToDebuggers)) report.standstill = Standstill::kNone;
  if (world_.mutant(Mutant::kBlameOurSignal)) report.end.after_our_signal = false;
  tell_daemon(KeeperChanged{report});
}

// Of which the daemon is told with the pipes.
void Worker::perform(const action::TakeOver& ordered) {
  ranks_.take_over(ordered);
  tell_daemon(Daemon::Taken{ordered.from});
}

void Worker::perform(const action::Pipes& ordered) {
  if (ranks_.has_pipes(ordered.key)) tell_daemon(Daemon::PipesOf{ordered.key});
}

void Worker::perform(const action::HoldReservation& ordered) {
  const Reserve& order = ordered.reserve;
  if (world_.random.permille(world_.faults().no_port)) {
    tell_daemon(Reserved{order.mesh, order.gang, order.generation, {}, "no port is free"});
    return;
  }
  Reserved held{order.mesh, order.gang, order.generation, {}, {}};
  for (std::uint32_t i = 0; i < order.count; ++i) {
    held.ports.push_back(static_cast<std::uint16_t>(20'000 + (order.generation.counter * 64 + i) % 10'000));
  }
  held.ports.insert(held.ports.end(), order.fixed.begin(), order.fixed.end());
  tell_daemon(std::move(held));
}

void Worker::perform(const action::RefuseReservation& ordered) {
  const Reserve& order = ordered.reserve;
  tell_daemon(Reserved{order.mesh, order.gang, order.generation, {}, ordered.why});
}

void Worker::perform(const action::Refused& ordered) {
  world_.note("start refused", host_.id.value(), ordered.key.rank.rank.value());
}

void Worker::perform(const action::ForkGuarded& ordered) {
  world_.note("daemon", host_.id.value(), ordered.starts);
  daemons_.push_back(std::make_unique<Daemon>(world_, host_, *this));
  handle(event::GuardedForked{world_.next_pid()});
}

void Worker::perform(const action::SignalGuarded&) { tell_daemon(Daemon::Terminated{}); }

void Worker::perform(const action::KillGuarded&) {
  if (Daemon* running = daemon()) running->die(SIGKILL);
}

void Worker::perform(const action::SayHello& ordered) {
  KeeperHello hello = ordered.hello;
  hello.incarnation = incarnation_;
  hello.keeper_pid = pid_;
  hello.has_stash = true;
  tell_daemon(Daemon::HelloWithStash{std::move(hello), stash_});
}

void Worker::perform(const action::Ping& ordered) { tell_daemon(KeeperPing{ordered.number}); }

void Worker::perform(const action::KillDescendants&) {
  ranks_.kill_everything();
  if (Daemon* left = daemon()) left->vanish();
}

void Worker::perform(const action::Exit& ordered) {
  world_.note("keeper exits", host_.id.value(), static_cast<std::uint64_t>(ordered.code));
  RankEnd how;
  how.kind = EndKind::kExited;
  how.value = ordered.code;
  end(how);
}

}  // namespace monarch::sim
