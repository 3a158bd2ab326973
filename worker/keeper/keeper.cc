#include "worker/keeper/keeper.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "transport/base/limits.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/messages/keeper.h"
#include "transport/messages/rank.h"
#include "transport/messages/stacks.h"
#include "transport/messages/viewer.h"
#include "transport/process/process_limits.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "transport/wire/sealed_memory.h"

namespace monarch {

namespace {

namespace event = keeper_event;
namespace action = keeper_action;

constexpr std::size_t kSpawnDescriptors = 3;
constexpr Duration kStraysPatience = Duration::seconds(1);  // less than the guarded process has to leave
// A thousand ranks are forked in many turns, between which this process hears and answers; and only as fast as the
// daemon takes their pipes.
constexpr std::size_t kForksATurn = 8;
constexpr std::size_t kUnreadWhileForking = 256;
constexpr Duration kForkPause = Duration::milliseconds(2);
constexpr std::size_t kHeldAtGates = 256;  // while others are forked: each has two descriptors more than one that runs

std::uint64_t random_number() {
  std::uint64_t number = 0;
  // Fails only where there is no getrandom at all (before Linux 3.17), which has no pidfd either.
  MONARCH_ASSERT(::getrandom(&number, sizeof number, 0) == static_cast<ssize_t>(sizeof number));
  return number;
}

UniqueFd copy_of(int fd) { return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

RankEnd end_of(const ExitStatus& status) {
  RankEnd end;
  end.kind = status.signaled ? EndKind::kSignaled : EndKind::kExited;
  end.value = status.value;
  end.core_dumped = status.core_dumped;
  return end;
}

std::string describe(const RankEnd& end) {
  switch (end.kind) {
    case EndKind::kExited: return text("exited with ", end.value);
    case EndKind::kSignaled: return text("was ended by ", signal_name(end.value));
    case EndKind::kNotExecuted: return errno_error(text("could not be started: ", end.detail), end.value).message;
    case EndKind::kSetupFailed: return text("was not started: setup exited with ", end.value);
    case EndKind::kNone: break;
  }
  return "ended";
}

ContainmentOptions containment_of(const KeeperSetup& setup) {
  return {.host_lines = {text(kJobUuidVariable, '=', setup.job.to_text()), text(kHostVariable, '=', setup.host_name)},
          .rank_variable = std::string(kRankKeyVariable),
          .job = setup.job.to_text(),
          .host = setup.host_name};
}

// A process that is kept costs its keeper some six descriptors: the usual 1,024 would end at 170 ranks. Children get
// what the user has, since one that uses select(2) relies on it.
std::optional<rlimit> raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  const rlimit highest{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
  (void)::setrlimit(RLIMIT_NOFILE, &highest);  // up to the hard limit it does not fail
  return limit;
}

}  // namespace

Result<std::unique_ptr<Keeper>> Keeper::create(KeeperSetup setup) {
  setup.guarded.descriptor_limit = raise_descriptor_limit();
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return errno_error("becoming a subreaper", errno);
  (void)std::signal(SIGPIPE, SIG_IGN);  // cannot fail for SIGPIPE
  MONARCH_ASSIGN(auto loop, EventLoop::create());
  MONARCH_ASSIGN(auto signals, SignalFd::create({SIGTERM, SIGCHLD}));
  UniqueFd stash;
  if (setup.stash) {
    MONARCH_ASSIGN(stash, make_sealed_memory("monarch-stash", *setup.stash));
    setup.stash.reset();
  }
  auto keeper = std::unique_ptr<Keeper>(new Keeper(std::move(setup), std::move(loop), std::move(signals)));
  keeper->stash_ = std::move(stash);
  MONARCH_ASSIGN(const WatchId watched, keeper->loop_->watch(keeper->signals_->descriptor(), Interest::kRead,
                                                             [raw = keeper.get()](Readiness) { raw->on_signals(); }));
  (void)watched;  // for the life of the loop
  return keeper;
}

Keeper::Keeper(KeeperSetup setup, std::unique_ptr<EventLoop> loop, std::unique_ptr<SignalFd> signals)
    : setup_(std::move(setup)),
      loop_(std::move(loop)),
      signals_(std::move(signals)),
      watch_(*loop_),
      containment_(containment_of(setup_),
                   setup_.options.kind == KeeperKind::kGuard ? CgroupUse::kNever : setup_.cgroups),
      core_(setup_.options),
      reservations_({setup_.host_name, setup_.job_id, setup_.lock_directories, ""}),
      doors_(*loop_, std::move(setup_.doors), [this](KeeperEvent happened) { handle(std::move(happened)); }),
      ranks_(*loop_, watch_, containment_, reservations_, doors_,
             RankProcessesOptions{setup_.environment, setup_.job.to_text(), setup_.host_name, setup_.umask,
                                  setup_.guarded.descriptor_limit, setup_.tree,
                                  RankFiles(setup_.state_directory, setup_.rank_files),
                                  [this](pid_t tracer) { return stacks_.is_ours(tracer); },
                                  [this](const InputTaken& taken) { send(taken, taken.process); }},
             [this](KeeperEvent happened) { on_rank(std::move(happened)); }),
      stacks_(*loop_, watch_, setup_.environment, stack_handlers()),
      guarded_(*loop_, watch_, std::move(setup_.guarded), guarded_handlers()),
      incarnation_(random_number()) {
  if (setup_.options.kind == KeeperKind::kWorker && !containment_.uses_cgroup()) {
    log_info("ranks are contained without a cgroup: ", containment_.without_cgroup_because());
  }
}

GuardedHandlers Keeper::guarded_handlers() {
  return {.on_frame = [this](const Frame& frame, std::vector<UniqueFd> fds) { on_frame(frame, std::move(fds)); },
          .on_hang_up = [this] { handle(event::GuardedHungUp{}); },
          .on_exit =
              [this](const ExitStatus& status) {
                const RankEnd end = not_executed_ ? *std::exchange(not_executed_, std::nullopt) : end_of(status);
                if (!core_.ending() || end.kind != EndKind::kExited) log_warn("the guarded process ", describe(end));
                handle(event::GuardedExited{end});
              },
          .on_not_executed =
              [this](const StepFailure& failure) {
                not_executed_ = RankEnd{};
                not_executed_->kind = EndKind::kNotExecuted;
                not_executed_->value = failure.error;
                not_executed_->detail = failure.detail;
              }};
}

StackTakerHandlers Keeper::stack_handlers() {
  return {.leader = [this](const Incarnation& key) { return ranks_.leader(key); },
          .answer = [this](const Incarnation& key, const Stacks& stacks) { send(stacks, key); }};
}

int Keeper::run() {
  handle(event::Tick{});
  loop_->run();
  return exit_code_;
}

// An action's outcome may come while the actions of its step are still being performed: it waits its turn.
void Keeper::handle(KeeperEvent happened) {
  tell(std::move(happened));
  if (std::exchange(handling_, true)) return;
  handle_waiting();
  handling_ = false;
  arm_timer();
}

void Keeper::handle_waiting() {
  while (!events_.empty() && !core_.exited()) {
    const KeeperEvent happened = std::move(events_.front());
    events_.pop_front();
    for (const KeeperAction& ordered : core_.step(happened, loop_->now())) {
      std::visit([this](const auto& one) { perform(one); }, ordered);
    }
  }
}

void Keeper::arm_timer() {
  const Instant due = core_.next_due();
  if (due == timer_due_) return;
  loop_->cancel(timer_);
  timer_due_ = due;
  if (due == Instant::never()) return;
  timer_ = loop_->at(due, [this] {
    timer_due_ = Instant::never();
    handle(event::Tick{});
  });
}

void Keeper::on_frame(const Frame& frame, std::vector<UniqueFd> descriptors) {
  handle(event::GuardedSpoke{});
  if (const Status taken = take(frame, std::move(descriptors)); !taken) {
    log_warn("a frame of type ", frame.header.type, " of the guarded process: ", taken.error().message);
  }
}

// Who sends a signal may have seen the output of a program whose start this loop has not come to yet.
void Keeper::take_signal(Signal order) {
  for (const RankId& rank : order.ranks) ranks_.ask_whether_executed({rank, order.generation});
  handle(std::move(order));
}

Status Keeper::take(const Frame& frame, std::vector<UniqueFd> descriptors) {
  const auto pass = [this](auto&& message) { handle(std::forward<decltype(message)>(message)); };
  return route(
      frame.header, frame.payload, when<Reserve>(pass), when<Start>(pass), when<Stop>(pass),
      when<Signal>([this](Signal&& order) { take_signal(std::move(order)); }), when<Tell>(pass),
      when<Input>([this](const Input& order) { ranks_.give_input(order); }), when<CommitAnswer>(pass),
      when<KeeperLease>(pass), when<KeeperForget>(pass), when<KeeperReady>(pass), when<KeeperLetLive>(pass),
      when<KeeperShutdown>(pass),
      when<KeeperStash>([this](const KeeperStash& stash) { return take_stash(stash); }, limits::kSeqpacketPayloadBytes),
      when<KeeperKeepOpen>([&](const KeeperKeepOpen& order) -> Status {
        if (descriptors.size() != order.count)
          return Error{ErrorCode::kInvalid, "not as many descriptors as were told of"};
        guarded_.keep_open(std::move(descriptors));
        return {};
      }),
      when<TakeStacks>([this](const TakeStacks& order) { return take_stacks(order); }),
      when<KeeperPipesTaken>([this](const KeeperPipesTaken& taken) { ranks_.pipes_taken(taken.process); }),
      when<KeeperPong>([&](const KeeperPong& pong) {
        for (const UniqueFd& page : descriptors) guarded_.watch_steps(page.get());
        handle(event::GuardedPong{pong.number});
      }),
      when<KeeperSpawn>([&](KeeperSpawn&& spawn) -> Status {
        if (descriptors.size() != kSpawnDescriptors) {
          return Error{ErrorCode::kInvalid, "a process needs three descriptors: stdin, stdout and stderr"};
        }
        const Incarnation key = frame.header.process;
        spawn_descriptors_[key] = std::move(descriptors);
        handle(event::Spawn{key, std::move(spawn)});
        spawn_descriptors_.erase(key);
        return {};
      }));
}

Status Keeper::take_stash(const KeeperStash& stash) {
  MONARCH_ASSIGN(stash_, make_sealed_memory("monarch-stash", stash.bytes));
  return {};
}

Status Keeper::take_stacks(const TakeStacks& order) {
  // What a guard keeps is ours, and holds keys.
  if (setup_.options.kind == KeeperKind::kGuard) return Error{ErrorCode::kInvalid, "a guard shows nobody's stacks"};
  stacks_.take(order);
  return {};
}

void Keeper::send(std::uint16_t type, std::string payload, const Incarnation& key, std::vector<UniqueFd> descriptors) {
  const Frame frame{{.type = type, .job = setup_.job, .process = key, .seq = ++sent_}, std::move(payload)};
  guarded_.send(frame, std::move(descriptors));
}

// It has no process until its turn comes, which the core calls kForking.
void Keeper::perform(const action::ForkRank& ordered) {
  to_fork_.push_back(ordered);
  if (to_fork_.size() == 1) loop_->defer([this] { fork_some(); });
}

// Outcomes come when all of a fork is noted, as those of actions do.
void Keeper::fork_some() {
  MONARCH_ASSERT(!handling_);
  handling_ = true;
  for (std::size_t forks = 0; forks < kForksATurn && !to_fork_.empty(); ++forks) {
    if (guarded_.unread() > kUnreadWhileForking) break;
    ranks_.fork_rank(to_fork_.front());
    to_fork_.pop_front();
  }
  handle_waiting();
  handling_ = false;
  arm_timer();
  if (!to_fork_.empty()) fork_more_later();
  if (to_fork_.empty() || to_open_.size() >= kHeldAtGates) {
    for (const Incarnation& key : std::exchange(to_open_, {})) ranks_.open_gate(key);
  }
}

// No rank passes its gate while others are still to be forked, of as many as a host mostly has: what cannot be forked
// is known before anybody runs.
void Keeper::perform(const action::OpenGate& ordered) {
  if (!to_fork_.empty()) return to_open_.push_back(ordered.key);
  ranks_.open_gate(ordered.key);
}

// By a timer, since what is deferred would come before what the descriptors have to say.
void Keeper::fork_more_later() {
  const Duration pause = guarded_.unread() > kUnreadWhileForking ? kForkPause : Duration::zero();
  (void)loop_->at(loop_->now() + pause, [this] { fork_some(); });
}

void Keeper::perform(const action::SignalRank& ordered) {
  if (ordered.number == SIGSTOP || ordered.number == SIGTSTP) stacks_.leave(ordered.key, true);
  if (ordered.number == SIGCONT) stacks_.leave(ordered.key, false);
  ranks_.signal(ordered.key, ordered.number, ordered.to);
}

void Keeper::perform(const action::FreezeTree& ordered) {
  if (ranks_.freeze(ordered.key)) stacks_.leave(ordered.key, true);
}

void Keeper::perform(const action::ThawTree& ordered) {
  if (ranks_.thaw(ordered.key)) stacks_.leave(ordered.key, false);
}

void Keeper::perform(const action::KillRank& ordered) {
  stacks_.abandon(ordered.key);
  ranks_.kill_rank(ordered.key);
}

void Keeper::perform(const action::KillTree& ordered) {
  stacks_.abandon(ordered.key);
  ranks_.kill(ordered.key);
}

void Keeper::perform(const action::ForkSpawned& ordered) {
  ranks_.fork_spawned(ordered, spawn_descriptors_[ordered.key]);
}

void Keeper::perform(const action::Report& ordered) { send(KeeperChanged{ordered.report}, ordered.report.process); }

void Keeper::perform(const action::Pipes& ordered) {
  const RankPipes* pipes = ranks_.pipes(ordered.key);
  if (pipes == nullptr || !guarded_.connected()) return;
  std::vector<UniqueFd> copies;
  copies.push_back(copy_of(pipes->output));
  copies.push_back(copy_of(pipes->error));
  if (!copies[0].valid() || !copies[1].valid()) {
    return log_error("the output of ", rank_key(ordered.key), " cannot be handed over: no descriptor is left");
  }
  const KeeperPipes message{pipes->mesh_name, pipes->log_max_bytes, pipes->ready_port, pipes->standby};
  send(message, ordered.key, std::move(copies));
}

void Keeper::perform(const action::HoldReservation& ordered) {
  const Reserve& order = ordered.reserve;
  auto ports = reservations_.hold(order);
  Reserved answer{order.mesh, order.gang, order.generation, {}, {}};
  if (ports) {
    answer.ports = std::move(ports).value();
  } else {
    answer.error = ports.error().message;
  }
  send(answer, {});
}

void Keeper::perform(const action::RefuseReservation& ordered) {
  const Reserve& order = ordered.reserve;
  send(Reserved{order.mesh, order.gang, order.generation, {}, ordered.why}, {});
}

void Keeper::perform(const action::ReleaseReservation& ordered) {
  reservations_.release({ordered.mesh, ordered.gang, ordered.generation});
}

void Keeper::perform(const action::Refused& ordered) {
  log_warn("refused to start ", rank_key(ordered.key), ": ", ordered.why);
}

void Keeper::perform(const action::ForkGuarded& ordered) {
  const auto started = guarded_.start();
  if (const auto* failure = std::get_if<StepFailure>(&started)) {
    const StepFailure named = with_limit(*failure);
    log_error("starting the guarded process: ", named.detail, ": ", std::generic_category().message(named.error));
    return handle(event::GuardedForkFailed{failure->error});
  }
  const pid_t pid = std::get<pid_t>(started);
  if (ordered.starts > 1) log_warn("started the guarded process again, as pid ", pid);
  handle(event::GuardedForked{pid});
}

void Keeper::perform(const action::KillGuarded& ordered) {
  log_warn("killing the guarded process: ", ordered.why);
  guarded_.signal(SIGKILL);
}

void Keeper::perform(const action::SayHello& ordered) {
  KeeperHello hello = ordered.hello;
  hello.incarnation = incarnation_;
  hello.keeper_pid = ::getpid();
  std::vector<UniqueFd> descriptors;
  if (UniqueFd copy = stash_.valid() ? copy_of(stash_.get()) : UniqueFd(); copy.valid()) {
    descriptors.push_back(std::move(copy));
  }
  hello.has_stash = !descriptors.empty();
  send(hello, {}, std::move(descriptors));
}

void Keeper::perform(const action::Ping& ordered) {
  send(KeeperPing{ordered.number}, {});
  if (const auto steps = guarded_.steps()) handle(event::GuardedSteps{*steps});
}

void Keeper::perform(const action::TellEnded& ordered) {
  // A rank's process that wiped its marks and lost its parents came to us.
  const std::size_t strays = kill_descendants_but(guarded_.pid(), kStraysPatience);
  if (strays > 0) log_error(strays, " processes could not be killed");
  send(KeeperEnded{ordered.wedged + static_cast<std::uint32_t>(strays)}, {});
}

void Keeper::perform(const action::KillDescendants& ordered) {
  if (const std::size_t left = kill_descendants(ordered.grace, limits::kKillDeadline, ordered.spared); left > 0) {
    log_error(left, " processes could not be killed");
  }
}

void Keeper::perform(const action::Exit& ordered) {
  exit_code_ = ordered.code;
  loop_->stop();
}

}  // namespace monarch
