#include "tests/sim/daemon.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "tests/sim/checker.h"
#include "tests/sim/guard.h"
#include "tests/sim/posts.h"
#include "tests/sim/supervisor.h"
#include "tests/sim/world.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/wire/messages.h"

namespace monarch::sim {

namespace {

constexpr Duration kLeavePatience = Duration::milliseconds(1'400);
constexpr Duration kLastWords = Duration::milliseconds(300);
constexpr Duration kRemovePatience = Duration::milliseconds(200);
constexpr Duration kOrphanedPatience = Duration::milliseconds(500);
constexpr Duration kFirstProbe = Duration::milliseconds(50);
constexpr Duration kLongestProbe = Duration::seconds(1);
constexpr std::uint32_t kEnoughCpus = 10'000;

}  // namespace

Daemon::Daemon(World& world, Host& host, Worker& worker)
    : world_(world),
      host_(host),
      worker_(worker),
      main_(std::make_shared<Life>()),
      beat_(std::make_shared<Life>()),
      tick_(world.scheduler, host.clock, main_, [this] { feed(daemon::Tick{}); }),
      beat_alarm_(world.scheduler, host.clock, beat_, [this] { beat_if_due(); }) {
  // Until it is executed and has found its feet, what is sent to it waits.
  born_ = world.scheduler.now();
  main_->freeze();
  const Duration boot = world.random.skewed(Duration::milliseconds(2), Duration::milliseconds(200));
  world.scheduler.after(boot, [life = main_] { life->thaw(); });
}

void Daemon::hear(FromKeeper message) {
  send_after(world_.scheduler, kHop, main_, [this, message = std::move(message)] {
    turned();
    std::visit([this](const auto& said) { on(said); }, message);
  });
}

bool Daemon::young() const { return world_.scheduler.now() - born_ < Duration::seconds(6); }

void Daemon::turned() { turn_ = host_.now(); }

void Daemon::on(const HelloWithStash& said) {
  stash_ = said.stash;
  const bool first_start = stash_.public_key.empty();
  if (first_start && world_.random.permille(world_.faults().launch_fails)) return exit(kExitInternal);
  stash_.promised = std::max(stash_.promised, host_.promise_on_disk);
  if (first_start) stash_.public_key = "key";
  hello_.host = host_.id.value();
  hello_.incarnation = said.hello.incarnation;
  hello_.keeper_pid = said.hello.keeper_pid;
  hello_.daemon_starts = said.hello.starts;
  hello_.promised = stash_.promised;
  core_.emplace(daemon::CoreOptions{.job = stash_.job,
                                    .promised = stash_.promised,
                                    .orphan_ttl = stash_.bootstrap.orphan_ttl,
                                    .hearing = stash_.bootstrap.suspect_after});
  schedule_.emplace(stash_.bootstrap.heartbeat, said.hello.starts);
  adopted_ = said.hello.ranks;
  if (has_link()) world_.network->dial(host_.id);
  worker_.hear_stash(stash_);
  owe_hello(false);
  world_.checker->daemon_starts(host_.id);
  feed(daemon::Started{stash_.bootstrap.term});
  for (const RankReport& report : said.hello.ranks) feed(daemon::RankTold{report});
  flush_beat();
  if (!first_start) return;
  BootstrapReply reply;
  reply.public_key = stash_.public_key;
  reply.keeper_pid = said.hello.keeper_pid;
  reply.inventory.cpus = world_.random.permille(world_.faults().few_cpus) ? 0 : kEnoughCpus;
  if (world_.posts != nullptr) reply.host_address = text("10.0.0.", host_.id.value());
  worker_.hear_reply(reply);
}

void Daemon::on(const PipesOf& said) { piped_.insert(said.key); }

void Daemon::on(const Taken& said) {
  piped_.erase(said.standby);
  feed(daemon::TakenOver{said.standby});
}

void Daemon::on(const KeeperPing& said) {
  settle_adopted();
  worker_.hear(keeper_event::GuardedPong{said.number});
}

void Daemon::on(const KeeperChanged& said) {
  settle_adopted();
  on_report(said.report);
}

void Daemon::on(const Reserved& said) {
  settle_adopted();
  if (has_link()) world_.network->send_up({.host = host_.id, .link = 0, .term = hello_.promised, .message = said});
}

void Daemon::on(const Terminated&) { leave(kLeavePatience, 0); }

void Daemon::on(const KeeperGone&) {
  if (phase_ != Phase::kServing) return remove_state();
  world_.note("daemon sweeps", host_.id.value());
  const monarch::KeeperGone gone{.incarnation = hello_.incarnation};
  if (has_link()) world_.network->send_up({.host = host_.id, .link = 0, .term = hello_.promised, .message = gone});
  worker_.ranks().kill_everything();
  leave(kOrphanedPatience, kExitInternal);
}

void Daemon::settle_adopted() {
  for (const RankReport& report : std::exchange(adopted_, {})) on_report(report);
}

void Daemon::on_report(const RankReport& report) {
  feed(daemon::RankTold{report});
  probe(report);
  if (report.phase != RankPhase::kEnded) return;
  const Incarnation key = report.process;
  if (!piped_.contains(key)) return feed(daemon::OutputTold{key, 0, 0, true});
  output_later(key);
}

// As the daemon's ready_probes do.
void Daemon::probe(const RankReport& report) {
  if (!world_.checker->is_of_spec(report.process.rank)) return;
  if (world_.scenario.spec.meshes[report.process.rank.mesh.value()].ready.kind != ReadyKind::kTcp) return;
  const Incarnation key = report.process;
  if (report.ready || report.phase >= RankPhase::kStopping) {
    probed_.erase(key);
  } else if (report.phase == RankPhase::kRunning && piped_.contains(key) && probed_.insert(key).second) {
    try_port(key, kFirstProbe);
  }
}

void Daemon::try_port(const Incarnation& key, Duration wait) {
  if (!probed_.contains(key)) return;
  if (worker_.ranks().accepts(key)) {
    probed_.erase(key);
    return worker_.hear(KeeperReady{key});
  }
  send_after(world_.scheduler, wait, main_, [this, key, wait] {
    turned();
    try_port(key, std::min(wait * 2, kLongestProbe));
  });
}

void Daemon::output_later(const Incarnation& key) {
  const bool slow = world_.random.permille(world_.faults().slow_disk);
  const Duration wait =
      world_.random.skewed(Duration::microseconds(100), slow ? Duration::seconds(5) : Duration::milliseconds(50));
  send_after(world_.scheduler, wait, main_, [this, key] {
    turned();
    const auto& processes = worker_.ranks().processes();
    const auto known = processes.find(key);
    const Instant evidence_at = known == processes.end() ? Instant::never() : known->second.evidence_at;
    feed(daemon::OutputTold{key, 10, 20, true, evidence_at == Instant::never() ? 0U : 30U, evidence_at});
  });
}

namespace {

// Orders that a daemon does not read are passed on as they came.
template <class Message>
auto as_heard(const Message& message) {
  if constexpr (std::is_constructible_v<decltype(daemon::FrameHeard::message), const Message&>) {
    return message;
  } else if constexpr (std::is_same_v<Message, ClaimAnswer>) {
    return daemon::ForPost{.type = number_of<Message>(), .payload = encode_payload(message)};
  } else {
    return daemon::ForKeeper{.type = number_of<Message>(), .payload = encode_payload(message)};
  }
}

}  // namespace

void Daemon::deliver(Down message) {
  // On the beat thread: what an ACK answers is known here; then over the inbox to the main loop.
  daemon::FrameHeard heard{.job = stash_.job, .term = message.term, .sent_at = {}, .message = {}};
  std::visit([&](const auto& order) { heard.message = as_heard(order); }, message.message);
  if (const auto* ack = std::get_if<Ack>(&message.message)) heard.sent_at = schedule_->answered(ack->seq);
  if (world_.mutant(Mutant::kLeaseFromReceipt) && heard.sent_at) heard.sent_at = host_.now();
  main_->message([this, frame = std::move(heard)]() mutable {
    turned();
    world_.checker->hears(host_.id, frame);
    if (world_.mutant(Mutant::kAckAnyGeneration)) grant_whatever_runs(frame);
    if (world_.mutant(Mutant::kObeyLowerTerms)) frame.term = std::max(frame.term, core_->promised());
    feed(std::move(frame));
  });
}

// A planted bug: an ACK counts for whatever generation of its ranks is here.
void Daemon::grant_whatever_runs(daemon::FrameHeard& frame) const {
  auto* ack = std::get_if<Ack>(&frame.message);
  if (ack == nullptr) return;
  for (Incarnation& granted : ack->granted) {
    for (const RankReport& report : core_->reports()) {
      if (report.process.rank == granted.rank) granted = report.process;
    }
  }
}

void Daemon::feed(const daemon::Event& event) {
  if (!core_ || !main_->alive()) return;
  const Term before = core_->promised();
  for (const daemon::Action& action : core_->step(event, host_.now())) {
    world_.checker->obeys(host_.id, event, action);
    std::visit([this](const auto& each) { perform(each); }, action);
    if (!main_->alive()) return;
  }
  if (core_->promised() != before) owe_hello(false);
  tick_.set(core_->next_due());
  check_left();
}

void Daemon::perform(const daemon::PersistPromise& action) {
  const bool slow = world_.random.permille(world_.faults().slow_disk);
  const bool fails = world_.random.permille(world_.faults().promise_fails);
  const Duration wait =
      world_.random.skewed(Duration::microseconds(100), slow ? Duration::seconds(5) : Duration::milliseconds(20));
  const bool kept = !world_.mutant(Mutant::kPromiseNotKept);
  if (kept) {
    stash_.promised = action.term;
    worker_.hear_stash(stash_);
  }
  send_after(world_.scheduler, wait, main_, [this, fails, kept, term = action.term] {
    turned();
    if (fails) return feed(daemon::PromiseFailed{term});
    if (kept) host_.promise_on_disk = std::max(host_.promise_on_disk, term);
    world_.checker->promised(host_.id, term);
    feed(daemon::PromisePersisted{term});
  });
}

void Daemon::perform(const daemon::TellKeeper& action) {
  std::visit(
      [this](const auto& message) {
        using Message = std::decay_t<decltype(message)>;
        if constexpr (std::is_same_v<Message, daemon::ForKeeper>) {
          pass_on(message);
        } else {
          worker_.hear(KeeperEvent{message});
        }
        if constexpr (std::is_same_v<Message, KeeperForget>) {
          for (const Incarnation& process : message.processes) piped_.erase(process);
        }
        if constexpr (std::is_same_v<Message, KeeperShutdown>) leave(kLeavePatience, 0);
      },
      action.message);
}

// As a keeper reads it. Of stacks nothing reaches its core, and nobody asks for them here.
void Daemon::pass_on(const daemon::ForKeeper& order) {
  const auto hear = [this](auto&& message) { worker_.hear(KeeperEvent{std::forward<decltype(message)>(message)}); };
  const Status taken =
      route({.type = order.type}, order.payload, when<Reserve>(hear), when<Stop>(hear), when<Signal>(hear),
            when<Tell>(hear), when<CommitAnswer>(hear), when<TakeStacks>([](const TakeStacks&) {}));
  MONARCH_ASSERT(taken.ok());
}

// As a post reads it. No host here has a vault.
void Daemon::perform(const daemon::TellServant& action) {
  const auto* told = std::get_if<daemon::ForPost>(&action.message);
  if (told == nullptr || world_.posts == nullptr) return;
  const Status taken =
      route({.type = told->type}, told->payload,
            when<ClaimAnswer>([this](const ClaimAnswer& answer) { world_.posts->answered(host_.id, answer); }));
  MONARCH_ASSERT(taken.ok());
}

void Daemon::perform(const daemon::SayHello&) { owe_hello(true); }

void Daemon::perform(const daemon::BeatChanged& action) {
  at_once_ = at_once_ || action.at_once;
  if (std::exchange(flush_armed_, true)) return;
  send_after(world_.scheduler, Duration::nanoseconds(0), main_, [this] { flush_beat(); });
}

void Daemon::flush_beat() {
  flush_armed_ = false;
  new_content(core_->reports(), std::exchange(at_once_, false));
}

void Daemon::connected() {
  beat_->message([this] {
    hello_owed_ = true;
    schedule_->hurry(host_.now());
    beat_if_due();
  });
}

void Daemon::disconnected() {}

void Daemon::leave(Duration patience, int exit_code) {
  if (phase_ != Phase::kServing) return;
  phase_ = Phase::kLeaving;
  exit_code_ = exit_code;
  send_after(world_.scheduler, patience, main_, [this] { remove_state(); });
  send_after(world_.scheduler, Duration::nanoseconds(0), main_, [this] { check_left(); });
}

void Daemon::check_left() {
  if (phase_ != Phase::kLeaving) return;
  const std::vector<RankReport> reports = core_ ? core_->reports() : std::vector<RankReport>();
  if (reports.empty()) return remove_state();
  const bool complete = std::all_of(reports.begin(), reports.end(), [](const RankReport& report) {
    return report.phase == RankPhase::kEnded && report.output_complete;
  });
  if (!complete || std::exchange(last_words_, true)) return;
  send_after(world_.scheduler, kLastWords, main_, [this] { remove_state(); });
}

void Daemon::remove_state() {
  if (std::exchange(phase_, Phase::kRemoving) == Phase::kRemoving) return;
  const bool slow = world_.random.permille(world_.faults().slow_disk);
  send_after(world_.scheduler, slow ? kRemovePatience : Duration::milliseconds(1), main_, [this] { exit(exit_code_); });
}

void Daemon::exit(int code) {
  end_lives();
  RankEnd how;
  how.kind = EndKind::kExited;
  how.value = code;
  worker_.daemon_ended(how);
}

void Daemon::die(int signal) {
  if (!alive()) return;
  world_.note("daemon dies", host_.id.value());
  end_lives();
  RankEnd how;
  how.kind = EndKind::kSignaled;
  how.value = signal;
  worker_.daemon_ended(how);
}

void Daemon::vanish() {
  if (alive()) end_lives();
}

// Once another worker was launched on its host its key is not let in any more.
bool Daemon::has_link() const { return host_.worker() == &worker_; }

void Daemon::end_lives() {
  main_->end();
  beat_->end();
  if (has_link()) world_.network->hang_up(host_.id);
}

void Daemon::hang() {
  if (!alive() || std::exchange(hangs_, true)) return;
  main_->freeze();
}

void Daemon::unhang() {
  if (!alive() || !std::exchange(hangs_, false)) return;
  main_->thaw();
}

void Daemon::freeze() {
  frozen_at_ = host_.now();
  main_->freeze();
  beat_->freeze();
}

void Daemon::thaw() {
  feed(daemon::StoodStill{host_.now() - frozen_at_});
  beat_->thaw();
  main_->thaw();
}

}  // namespace monarch::sim
