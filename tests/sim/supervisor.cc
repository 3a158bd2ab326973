#include "tests/sim/supervisor.h"

#include <csignal>
#include <utility>

#include "supervisor/core/health/own_stall.h"
#include "supervisor/core/job/operator_request.h"
#include "supervisor/journal/core_records.h"
#include "tests/sim/checker.h"
#include "tests/sim/guard.h"
#include "tests/sim/replay/recorder.h"
#include "tests/sim/world.h"
#include "tests/supervisor/core/state_parts.h"
#include "transport/base/exit_code.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"
#include "transport/messages/describe_end.h"

namespace monarch::sim {

namespace {

constexpr Duration kBootstrapDeadline = Duration::seconds(30);
constexpr Duration kSweepPeriod = Duration::milliseconds(20);
constexpr MeshId kWorkersMesh(0xFFFF'FFFFU);

Incarnation key_of(HostId host, Generation generation) { return {{kWorkersMesh, Rank(host.value())}, generation}; }

}  // namespace

Supervisor::Supervisor(World& world)
    : world_(world),
      life_(std::make_shared<Life>()),
      journal_life_(std::make_shared<Life>()),
      deadline_(world.scheduler, world.supervisor_clock, life_, [this] { (void)decide(DeadlinePassed{}); }),
      health_(world.scheduler, world.supervisor_clock, life_, [this] { health_turn(); }),
      claims_due_(world.scheduler, world.supervisor_clock, life_, [this] {
        book_->look_at_claims(now());
        watch_claims();
      }) {
  life_->freeze();  // what the guard says waits until it has booted
  const Duration boots = world.random.skewed(Duration::milliseconds(5), Duration::milliseconds(300));
  send_after(world.scheduler, boots, journal_life_, [this] { boot(); });
}

Supervisor::~Supervisor() {
  life_->end();
  journal_life_->end();
}

Instant Supervisor::now() const { return world_.supervisor_clock.local(world_.scheduler.now()); }

void Supervisor::boot() {
  const RecoverOptions options{.wall = {}, .now = now(), .writer = {.snapshot_every = world_.scenario.snapshot_every}};
  auto journal = recover_journal(world_.disk->files(), options);
  if (!journal.ok()) {
    world_.checker->recovery_failed(journal.error());
    return exit(kExitJournal);
  }
  term_ = journal->term;
  core_.emplace(core_spec(world_.scenario.spec, world_.scenario.mutant), pool_of(world_.scenario.spec), core_options());
  open_book();
  open_commits();
  const Status replayed = replay(journal->contents, *core_);
  if (world_.recorder != nullptr) world_.recorder->begun(journal->contents, *core_, now());
  world_.checker->recovered(journal->contents, replayed, *core_, term_);
  open_hangs();
  open_claims();
  journal_ =
      std::make_unique<Journal>(world_, journal_life_, std::move(journal->writer), [this](const JournalReport& report) {
        send_after(world_.scheduler, kHop, life_, [this, report] { on_journal(report); });
      });
  deadline_.set(core_->next_deadline());
  world_.network->supervisor_opens();
  life_->message([this] { begin(); });
  life_->thaw();
}

void Supervisor::begin() {
  if (core_->state().phase == JobPhase::kNew) {
    for (std::vector<InheritedGang>& part : in_parts(world_.scenario.continues.gangs)) {
      (void)decide(GangsInherited{std::move(part)});
    }
    (void)decide(JobBegun{.term = term_, .job = world_.checker->job(), .continues = world_.scenario.continues.job});
    return;
  }
  if (core_->state().phase == JobPhase::kEnded) return finish(*core_->state().verdict);
  for (std::uint32_t i = 0; i < core_->hosts().size(); ++i) {
    const HostPhase phase = state_parts::host(core_->state(), HostId(i)).phase;
    if (phase == HostPhase::kJoined) book_->expect_again(HostId(i), now());
    if (phase != HostPhase::kCold && phase != HostPhase::kEnded && phase != HostPhase::kLost)
      to_adopt_.insert(HostId(i));
  }
  watch_health();
  world_.coverage.returned(core_->state());
  inventory_known_ = false;
  send_after(world_.scheduler, limits::kPingPeriod, life_, [this] { check_inventory(); });
  (void)decide(SupervisorReturned{.term = term_});
  if (world_.mutant(Mutant::kClaimLost)) forget_claims();
}

// The guard has named all that it keeps: what it does not know has ended, or never began.
void Supervisor::check_inventory() {
  inventory_known_ = true;
  for (const HostId host : std::exchange(to_adopt_, {})) {
    if (!started_.contains(host)) end_unseen(host);
  }
  for (const HostId host : std::exchange(to_destroy_, {})) destroy(host);
}

// Nobody keeps it any more; what is left of it is looked for, as of any other.
void Supervisor::end_unseen(HostId host) {
  ending_.insert(host);
  RankEnd unseen;
  unseen.kind = EndKind::kExited;
  send_after(world_.scheduler, Duration::zero(), life_, [this, host, unseen, launch = launches_[host]] {
    tell_ended(host, world_.host(host).worker(), unseen, launch);
  });
}

void Supervisor::perform(const Action& action) {
  if (!alive()) return;
  world_.checker->performs(*core_, action);
  if (const auto* a = std::get_if<LaunchWorker>(&action)) return launch(a->host);
  if (const auto* a = std::get_if<SendReserve>(&action)) return send(a->host, a->message);
  if (const auto* a = std::get_if<SendStart>(&action)) return send(a->host, a->message);
  if (const auto* a = std::get_if<SendStop>(&action)) return send(a->host, a->message);
  if (const auto* a = std::get_if<SendCommitAnswer>(&action)) return answer(a->host, a->message);
  if (const auto* a = std::get_if<SendShutdown>(&action)) {
    book_->stop_expecting(a->host);
    return send(a->host, a->message);
  }
  if (const auto* a = std::get_if<DestroyWorker>(&action)) {
    book_->tell_steps(a->host);
    book_->stop_expecting(a->host);
    return destroy(a->host);
  }
  if (const auto* a = std::get_if<FinishJob>(&action)) return finish(a->verdict);
}

void Supervisor::finish(const Verdict& verdict) {
  exit_code_ = verdict.exit_code;
  const auto publish = [this, verdict] {
    world_.checker->verdict(verdict, *core_);
    leave(exit_code_);
  };
  (void)append(RecordType::kVerdict, "verdict", {});
  journal_->submit(WriteFileRequest{.ticket = ++last_ticket_, .name = "verdict.json", .bytes = {}});
  waiting_.push_back({.ticket = last_ticket_, .actions = {}, .then = {}});
  (void)append(RecordType::kClean, {}, publish);
}

void Supervisor::leave(int exit_code) {
  if (std::exchange(leaving_, true)) return;
  exit_code_ = exit_code;
  world_.guard->hear(KeeperShutdown{.exit_code = exit_code});
  send_after(world_.scheduler, Duration::milliseconds(5), life_, [this] { exit(exit_code_); });
}

void Supervisor::exit(int code) {
  RankEnd how;
  how.kind = EndKind::kExited;
  how.value = code;
  vanish();
  world_.guard->supervisor_ended(how);
}

void Supervisor::vanish() {
  if (!alive()) return;
  life_->end();
  journal_life_->end();
  if (journal_) journal_->crash();
  world_.network->supervisor_closes();
}

void Supervisor::die(int signal) {
  if (!alive()) return;
  world_.note("supervisor dies", term_.value());
  world_.checker->supervisor_died();
  vanish();
  RankEnd how;
  how.kind = EndKind::kSignaled;
  how.value = signal;
  world_.guard->supervisor_ended(how);
}

void Supervisor::freeze() {
  stands_still();
  life_->freeze();
  journal_life_->freeze();
}

void Supervisor::thaw() {
  if (world_.mutant(Mutant::kSleepThroughStall) && open()) health_turn();
  journal_life_->thaw();
  goes_on();
}

// As supervisor/loop/decider.cc: before it decides anything else, it looks for how long it did not.
void Supervisor::goes_on() {
  world_.checker->supervisor_goes_on();
  const Duration gap = now() - stood_from_;
  if (open() && gap > OwnStall::kTurn + OwnStall::kStall) (void)decide(StoodStill{gap});
  life_->thaw();
}

void Supervisor::stall() {
  if (std::exchange(stalled_, true)) return;
  stands_still();
  life_->freeze();
}

void Supervisor::unstall() {
  if (!std::exchange(stalled_, false)) return;
  if (world_.mutant(Mutant::kSleepThroughStall) && open()) health_turn();
  goes_on();
}

void Supervisor::stop(StopHow how) {
  StopRequest request;
  request.how = how;
  request.who = "operator";
  world_.checker->stop_requested();
  (void)decide(StopOrdered{.request = request});
}

void Supervisor::foresee(std::optional<Duration> left) {
  if (!open()) return;
  EndForeseen event{.why = "somebody takes the hosts back"};
  if (left) event.by = now() + *left;
  world_.note("foreseen", left ? 1 : 0, 0);
  (void)decide(event);
}

// As viewers.cc: who asks is told why not, and the core hears of the rest.
void Supervisor::ask(const OperatorRequest& request) {
  if (!open()) return;
  const Result<OperatorPlan> plan = operator_plan(*core_, request, now());
  world_.note("asked", static_cast<std::uint64_t>(request.wish), plan.ok() ? 1 : 0);
  if (plan.ok()) (void)decide(plan->event);
}

void Supervisor::on_signal(int number) {
  if (!open()) return;
  StopRequest request;
  request.who = text("signal ", number);
  world_.checker->stop_requested();
  request.how = core_->state().phase >= JobPhase::kStopping ? StopHow::kKill : StopHow::kOrderly;
  (void)decide(StopOrdered{.request = request});
}

// ---- the launcher ----

void Supervisor::launch(HostId host) {
  DaemonStash stash;
  stash.job = core_->state().job;
  stash.bootstrap.host = host.value();
  stash.bootstrap.host_name = core_->hosts()[host.value()].name;
  stash.bootstrap.term = term_;
  const Supervision& policy = world_.scenario.spec.supervision;
  stash.bootstrap.heartbeat = policy.heartbeat;
  stash.bootstrap.suspect_after = policy.suspect_after;
  stash.bootstrap.orphan_ttl = policy.orphan_ttl;
  const Generation generation{term_, ++launches_[host]};
  ending_.erase(host);
  world_.checker->launches(host);
  if (refuse_launch(host)) return;
  world_.guard->hear(Guard::Spawn{key_of(host, generation), stash});
  started_[host] = generation;
  pending_.insert(host);
  await_key(host);
}

void Supervisor::await_key(HostId host) {
  const Instant due = now() + kBootstrapDeadline;
  send_after(world_.scheduler, kBootstrapDeadline, life_, [this, host, due] {
    if (!pending_.contains(host)) return;
    if (now() > due + OwnStall::kStall) return await_key(host);
    launch_failed(host, LaunchFailureKind::kTimeout, "the worker did not tell its key");
  });
}

// As a launcher that reaches hosts over a network: nothing ever ran there.
bool Supervisor::refuse_launch(HostId host) {
  constexpr LaunchFailureKind kKinds[] = {LaunchFailureKind::kRefused, LaunchFailureKind::kTimeout,
                                          LaunchFailureKind::kHostKeyChanged, LaunchFailureKind::kHostKeyUnknown};
  const bool reached = world_.reachable(host);
  if (reached && !world_.random.permille(world_.faults().launch_refused)) return false;
  const LaunchFailureKind kind = reached ? kKinds[world_.random.below(std::size(kKinds))] : LaunchFailureKind::kTimeout;
  pending_.insert(host);
  const Duration wait = world_.random.skewed(Duration::milliseconds(5), Duration::seconds(15));
  send_after(world_.scheduler, wait, life_, [this, host, kind] {
    if (pending_.contains(host)) launch_failed(host, kind, "refused");
  });
  return true;
}

void Supervisor::on_reply(HostId host, const std::optional<BootstrapReply>& reply) {
  if (!pending_.contains(host)) return;
  if (!reply) return launch_failed(host, LaunchFailureKind::kExec, "the worker ended before it told its key");
  pending_.erase(host);
  (void)decide(WorkerLaunched{.host = host, .worker = {.reply = *reply, .control_endpoint = "tcp://sim:1"}});
  if (!world_.mutant(Mutant::kJoinUnheard)) return;
  (void)decide(WorkerJoined{.host = host, .incarnation = 0});
  book_->expect(host, now());
  watch_health();
}

void Supervisor::launch_failed(HostId host, LaunchFailureKind kind, const std::string& error) {
  pending_.erase(host);
  (void)decide(WorkerLaunchFailed{.host = host, .failure = {.kind = kind, .phase = "start", .message = error}});
}

void Supervisor::destroy(HostId host) {
  pending_.erase(host);
  if (ending_.contains(host)) return;
  const auto found = started_.find(host);
  if (found == started_.end() && !inventory_known_) {
    to_destroy_.insert(host);
    return;
  }
  if (found == started_.end()) return end_unseen(host);
  world_.guard->hear(Stop{.ranks = {key_of(host, found->second).rank},
                          .generation = found->second,
                          .signal = SIGKILL,
                          .grace = Duration::zero()});
}

void Supervisor::on_hello(const KeeperHello&) {}  // each worker that the guard kept is reported right after

void Supervisor::on_changed(const RankReport& report) {
  if (report.process.rank.mesh != kWorkersMesh) return;
  const HostId host(report.process.rank.rank.value());
  if (world_.mutant(Mutant::kForgetWorkers) && !started_.contains(host)) return;
  const auto found = started_.emplace(host, report.process.generation).first;
  if (found->second != report.process.generation) return;
  if (report.phase != RankPhase::kEnded) return;
  started_.erase(found);
  to_adopt_.erase(host);
  to_destroy_.erase(host);
  world_.guard->hear(Guard::Forget{report.process});
  if (pending_.contains(host)) launch_failed(host, LaunchFailureKind::kExec, "the worker ended before it told its key");
  tell_ended(host, world_.guard->worker_of(key_of(host, report.process.generation)), report.end, launches_[host]);
}

// A worker has ended when nothing of it lives. Once another is launched there the end of the one before says nothing.
void Supervisor::tell_ended(HostId host, Worker* worker, const RankEnd& end, std::uint64_t launch) {
  if (launches_[host] != launch || ended_[host] > launch) return;
  ending_.insert(host);
  if (worker == nullptr || worker->gone() || world_.host(host).off) return worker_ended(host, worker, end);
  if (world_.reachable(host)) worker->ranks().kill_everything();
  send_after(world_.scheduler, kSweepPeriod, life_,
             [this, host, worker, end, launch] { tell_ended(host, worker, end, launch); });
}

void Supervisor::worker_ended(HostId host, const Worker* worker, const RankEnd& end) {
  ending_.erase(host);
  ended_[host] = launches_[host] + 1;  // once: the next launch may be decided, and not have begun
  book_->tell_steps(host);
  book_->stop_expecting(host);
  world_.note("worker ended", host.value());
  world_.checker->worker_ended(host, worker);
  (void)decide(
      WorkerEnded{.host = host, .how = describe_end(end), .orderly = end.kind == EndKind::kExited && end.value == 0});
}

}  // namespace monarch::sim
