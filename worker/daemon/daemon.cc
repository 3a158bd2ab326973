#include "worker/daemon/daemon.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/limits.h"
#include "transport/base/log.h"
#include "transport/base/machine.h"
#include "transport/base/text.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/keeper.h"
#include "transport/messages/rank.h"
#include "transport/messages/stacks.h"
#include "transport/messages/worker.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "worker/core/host_places.h"

namespace monarch::daemon {
namespace {

constexpr std::int64_t kBeatsToALink = 5;                   // then it is said that there is none
constexpr Duration kKeeperQuiet = limits::kPingPeriod * 2;  // it pings every period
constexpr Duration kLookEvery = Duration::seconds(1);
constexpr Duration kStall = Duration::milliseconds(500);    // it did not run
constexpr Duration kPressurePeriod = Duration::seconds(2);  // the kernel's own

Hello make_hello(const Setup& setup, const KeeperHello& keeper) {
  Hello hello;
  hello.host = setup.stash.bootstrap.host;
  hello.host_name = setup.stash.bootstrap.host_name;
  hello.incarnation = keeper.incarnation;
  hello.boot_id = read_boot_id();
  hello.keeper_pid = keeper.keeper_pid;
  hello.daemon_pid = ::getpid();
  hello.daemon_starts = keeper.starts;
  hello.version = MONARCH_VERSION;
  hello.promised = setup.stash.promised;
  if (setup.stash.bootstrap.post) hello.door = post_door(setup.stash.bootstrap.socket_directory);
  return hello;
}

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::start(Setup& setup, const KeeperHello& hello, UniqueFd keeper,
                                              SignalFd& signals) {
  std::unique_ptr<Daemon> daemon(new Daemon(setup, hello, signals));
  MONARCH_TRY(daemon->open(std::move(keeper)));
  daemon->begin(hello);
  return daemon;
}

Daemon::Daemon(Setup& setup, const KeeperHello& hello, SignalFd& signals)
    : setup_(setup),
      signals_(signals),
      hello_(make_hello(setup, hello)),
      core_(CoreOptions{.job = setup.stash.job,
                        .promised = setup.stash.promised,
                        .orphan_ttl = setup.stash.bootstrap.orphan_ttl,
                        .hearing = setup.stash.bootstrap.suspect_after}),
      adopted_(hello.ranks),
      warnings_(hello.warnings) {}

Daemon::~Daemon() = default;

Status Daemon::open(UniqueFd keeper) {
  MONARCH_ASSIGN(loop_, EventLoop::create());
  loop_->read_clock();
  keeper_heard_ = loop_->now();
  turn_stamp_ = loop_->now().since_boot().count_nanoseconds();
  MONARCH_TRY(watch_inboxes());
  ChannelHandlers handlers;
  handlers.on_frame = [this](const Frame& frame, std::vector<UniqueFd> descriptors) {
    on_keeper_frame(frame, std::move(descriptors));
  };
  handlers.on_closed = [this](const Error& why) { on_keeper_gone(why); };
  MONARCH_ASSIGN(keeper_, KeeperChannel::create(*loop_, std::move(keeper), setup_.stash.job, std::move(handlers)));
  std::vector<std::string> addresses{"127.0.0.1", "::1"};
  if (const std::string& own = setup_.stash.bootstrap.host_address; !own.empty())
    addresses.insert(addresses.begin(), own);
  probes_ = std::make_unique<ReadyProbes>(*loop_, std::move(addresses),
                                          [this](const Incarnation& ready) { tell_keeper(KeeperReady{ready}); });
  if (setup_.stash.bootstrap.checkpoint_memory > 0) make_vault_channel();
  if (setup_.stash.bootstrap.post) make_post_channel();
  std::random_device random;
  const Bootstrap& bootstrap = setup_.stash.bootstrap;
  const BeatOptions beat{.control = setup_.control,
                         .job = setup_.stash.job,
                         .heartbeat = bootstrap.heartbeat,
                         .daemon_starts = hello_.daemon_starts,
                         .seed = random()};
  MONARCH_ASSIGN(beat_, start_beat_thread(beat, setup_.keys, turn_stamp_, from_beat_->inbox()));
  const LogOptions log{.bulk = setup_.bulk,
                       .job = setup_.stash.job,
                       .state_directory = bootstrap.state_directory,
                       .log_directory = bootstrap.log_directory,
                       .copied = bootstrap.copied,
                       .seed = random()};
  MONARCH_ASSIGN(log_, start_log_thread(log, setup_.keys, from_log_->inbox()));
  return {};
}

Status Daemon::watch_inboxes() {
  MONARCH_ASSIGN([[maybe_unused]] const WatchId signals,
                 loop_->watch(signals_.descriptor(), Interest::kRead, [this](Readiness) { on_signal(); }));
  const auto beats = [this](FromBeat value) { std::visit([this](auto& each) { on_beat(std::move(each)); }, value); };
  MONARCH_ASSIGN(from_beat_, WatchedInbox<FromBeat>::create(*loop_, kBeatFrames, beats));
  const auto logs = [this](FromLog value) { std::visit([this](auto& each) { on_log(std::move(each)); }, value); };
  MONARCH_ASSIGN(from_log_, WatchedInbox<FromLog>::create(*loop_, kLogReports, logs));
  return {};
}

void Daemon::begin(const KeeperHello& hello) {
  // Before the first promise: what a daemon that crashes right now leaves behind has its keys.
  stash();
  say_hello(false);
  look_at_pressure();
  feed(Started{setup_.stash.bootstrap.term});
  for (const RankReport& report : hello.ranks) feed(RankTold{report});
  const auto spawned = [&](const RankId& process) {
    return std::find(hello.spawned.begin(), hello.spawned.end(), process) != hello.spawned.end();
  };
  if (vault_) vault_->servant().begin(spawned(kVaultProcess));
  if (post_) post_->servant().begin(spawned(kPostProcess));
  beat_later();
  loop_->at(loop_->now() + setup_.stash.bootstrap.heartbeat * kBeatsToALink, [this] {
    if (linked_ || refused_ || phase_ != Phase::kServing) return;
    const Bootstrap& bootstrap = setup_.stash.bootstrap;
    log_warn("the supervisor at ", bootstrap.control_endpoint, " cannot be reached from here (",
             bootstrap.host_address.empty() ? "no route" : bootstrap.host_address,
             "); this worker goes on trying, and ends after ", to_text(bootstrap.orphan_ttl),
             " without it and without ranks");
  });
}

int Daemon::run() {
  while (!result_) {
    loop_->run_once();
    // A keeper that hangs enforces no lease: our turns stop counting, and the supervisor takes the host for silent.
    const Instant good_until = keeper_heard_ + kKeeperQuiet;
    turn_stamp_.store(std::min(boot_now(), good_until).since_boot().count_nanoseconds(), std::memory_order_relaxed);
  }
  return *result_;
}

void Daemon::on_keeper_frame(const Frame& frame, std::vector<UniqueFd> descriptors) {
  keeper_heard_ = loop_->now();
  if (is_a<KeeperPipes>(frame.header)) return on_pipes(frame, std::move(descriptors));
  settle_adopted();  // all pipes of adopted ranks follow the hello
  const Status taken =
      route(frame.header, frame.payload,
            when<KeeperPing>([&](const KeeperPing& ping) { keeper_->answer(core_.promised(), ping); }),
            when<KeeperChanged>([&](const KeeperChanged& changed) { on_report(changed.report); }),
            when<KeeperEnded>([&](const KeeperEnded& ended) { on_keeper_ended(ended); }),
            when<KeeperWarned>([&](const KeeperWarned& warned) { on_warned(warned); }),
            // Lost where the log thread is stuck: who asked hears that nobody answered.
            unopened<Stacks>([&](std::string_view) {
              (void)log_->put(SayStacks{frame.header.process, frame.payload});
            }),
            // Lost where the beat thread is stuck: the supervisor asks again.
            unopened<Reserved, InputTaken>([&](std::string_view) {
              (void)beat_->put(SendFrame{Frame{{.type = frame.header.type, .job = setup_.stash.job}, frame.payload}});
            }));
  if (!taken.ok()) log_warn("the keeper said something that means nothing here: ", taken.error().message);
}

void Daemon::on_pipes(const Frame& frame, std::vector<UniqueFd> descriptors) {
  auto pipes = decode_payload<KeeperPipes>(frame.payload);
  if (!pipes || descriptors.size() != 2) {
    log_error("the keeper handed out pipes of rank ", frame.header.process.rank.rank.value(), " that are none");
    return;
  }
  const Incarnation incarnation = frame.header.process;
  piped_[incarnation] = pipes->ready_port;
  std::optional<Incarnation> standby;
  if (pipes->standby) {
    standby = {pipes->standby->rank, pipes->standby->generation};
    piped_.erase(*standby);
    feed(TakenOver{*standby});
  }
  LogSource source{incarnation,
                   std::move(pipes->mesh_name),
                   pipes->log_max_bytes,
                   std::move(descriptors[0]),
                   std::move(descriptors[1]),
                   standby};
  if (log_->put(std::move(source))) return;
  // Its output would never be read. The next daemon gets the pipes again.
  log_error("the log thread does not take orders");
  result_ = kExitInternal;
}

void Daemon::on_report(const RankReport& report) {
  if (report.process.rank == kVaultProcess) {
    if (vault_) vault_->servant().on_process(report);
    return;
  }
  if (report.process.rank == kPostProcess) {
    if (post_) post_->servant().on_process(report);
    return;
  }
  if (post_) post_->on_rank(report);
  feed(RankTold{report});
  probe(report);
  if (report.phase != RankPhase::kEnded) return;
  const Incarnation incarnation = report.process;
  if (!piped_.contains(incarnation)) {
    feed(OutputTold{incarnation, 0, 0, true});  // it never had pipes, so nothing is to come
  } else {
    // Where the order is lost the output completes with the end of the pipes, as it mostly does.
    (void)log_->put(RankEnded{incarnation});
  }
}

// What follows is the supervisor's to decide, and it has little time.
void Daemon::on_warned(const KeeperWarned& warned) {
  log_warn("the end of what runs on this host was foretold");
  warnings_ = warned.warnings;
  feed(EndForetold{});
  beat_at_once_ = true;
  beat_later();
}

// Also of a rank that an earlier daemon probed: what it found is in the report.
void Daemon::probe(const RankReport& report) {
  const Incarnation incarnation = report.process;
  const auto piped = piped_.find(incarnation);
  if (report.ready || report.phase >= RankPhase::kStopping) return probes_->end(incarnation);
  if (report.phase == RankPhase::kRunning && piped != piped_.end() && piped->second != 0) {
    probes_->begin(incarnation, piped->second);
  }
}

void Daemon::settle_adopted() {
  for (const RankReport& report : std::exchange(adopted_, {})) on_report(report);
}

void Daemon::on_beat(LinkUp&& /*event*/) {
  refused_ = false;
  linked_ = true;
  log_info("connected to the supervisor at ", setup_.stash.bootstrap.control_endpoint);
}

void Daemon::on_beat(LinkDown&& /*event*/) { log_info("lost the connection to the supervisor"); }

void Daemon::on_beat(LinkRefused&& event) {
  if (std::exchange(refused_, true)) return;
  log_warn("the supervisor refuses us: ", event.why.message);
}

void Daemon::on_beat(FramesDropped&& event) {
  log_warn("frames dropped: ", event.malformed, " malformed (", event.last_malformed, "), ", event.overflow,
           " without room");
}

void Daemon::on_log(LogProgress&& progress) {
  totals_ = progress.totals;
  feed(progress.told);
}

void Daemon::on_log(PromiseMade&& promise) {
  if (promise.status.ok()) return feed(PromisePersisted{promise.term});
  log_error("term ", promise.term.value(), " cannot be promised: ", promise.status.error().message);
  feed(PromiseFailed{promise.term});
}

void Daemon::on_log(StateRemoved&& /*event*/) { say_goodbye(); }

void Daemon::on_log(PipesTaken&& taken) { tell_keeper(KeeperPipesTaken{taken.incarnation}); }

void Daemon::feed(const Event& event) {
  const Term before = core_.promised();
  for (Action& action : core_.step(event, loop_->now())) {
    std::visit([this](auto& each) { perform(std::move(each)); }, action);
  }
  if (core_.promised() != before) say_hello(false);
  arm_tick();
  check_left();
}

void Daemon::perform(PersistPromise&& action) {
  setup_.stash.promised = action.term;
  stash();
  if (log_->put(MakePromise{action.term})) return;
  loop_->defer([this, term = action.term] { feed(PromiseFailed{term}); });
}

void Daemon::perform(TellKeeper&& action) {
  std::visit(
      [this](const auto& message) {
        using Message = std::decay_t<decltype(message)>;
        if constexpr (std::is_same_v<Message, ForKeeper>) {
          keeper_->pass_on(core_.promised(), message);
        } else {
          tell_keeper(message);
        }
        if constexpr (std::is_same_v<Message, KeeperForget>) {
          for (const Incarnation& incarnation : message.processes) {
            piped_.erase(incarnation);
            probes_->end(incarnation);
            (void)log_->put(RankForgotten{incarnation});  // lost: two closed files' worth of memory stay
          }
        }
        if constexpr (std::is_same_v<Message, KeeperShutdown>) {
          // Shutdown is said when every end is known, or when nobody is there to tell.
          nothing_to_tell_ = all_complete();
          leave_in_order();
        }
      },
      action.message);
}

void Daemon::perform(SayHello&& /*action*/) { say_hello(true); }

void Daemon::perform(BeatChanged&& action) {
  beat_at_once_ = beat_at_once_ || action.at_once;
  beat_later();
}

template <class Message>
void Daemon::tell_keeper(const Message& message) {
  keeper_->tell(core_.promised(), message);
}

void Daemon::stash() { tell_keeper(KeeperStash{encode_stash(setup_.stash)}); }

void Daemon::say_hello(bool again) {
  hello_.promised = core_.promised();
  if (beat_->put(HelloContent{hello_, again})) return;
  loop_->at(loop_->now() + kTellAgain, [this, again] { say_hello(again); });
}

void Daemon::beat_later() {
  beat_dirty_ = true;
  if (std::exchange(flush_armed_, true)) return;
  // All that happens in one turn goes into one beat.
  loop_->defer([this] { flush_beat(); });
}

void Daemon::flush_beat() {
  flush_armed_ = false;
  if (!beat_dirty_) return;
  std::vector<RankReport> reports = core_.reports();
  budget_.fit(reports);
  beat_dirty_ = !beat_->put(NextBeat{.content = {.ranks = std::move(reports),
                                                 .output_dropped_bytes = totals_.not_streamed_bytes,
                                                 .output_lost_bytes = totals_.lost_bytes,
                                                 .output_failure = totals_.failure,
                                                 .pressure = pressure_,
                                                 .vault = vault_ ? vault_->report() : std::nullopt,
                                                 .post = post_ ? post_->report() : std::nullopt,
                                                 .warnings = warnings_},
                                     .at_once = beat_at_once_});
  if (!beat_dirty_) {
    beat_at_once_ = false;
    return;
  }
  flush_armed_ = true;
  loop_->at(loop_->now() + kTellAgain, [this] { flush_beat(); });
}

void Daemon::look_at_pressure() {
  const std::optional<HostPressure> now = pressure_files_.read();
  if (std::exchange(pressure_, now) != now) beat_later();
  loop_->at(loop_->now() + kPressurePeriod, [this] { look_at_pressure(); });
}

void Daemon::arm_tick() {
  loop_->cancel(tick_timer_);
  tick_timer_ = 0;
  const Instant due = core_.next_due();
  if (due == Instant::never()) return;
  // Sooner than anything is to be done: a look that comes late tells that this process did not run.
  const Instant look = std::min(due, loop_->now() + kLookEvery);
  tick_timer_ = loop_->at(look, [this, look] {
    const Duration late = loop_->now() - look;
    if (late > kStall) feed(StoodStill{late});
    if (loop_->now() < core_.next_due()) return arm_tick();
    log_info("no supervisor was heard of for ", to_text(setup_.stash.bootstrap.orphan_ttl), ", and no rank lives");
    feed(Tick{});
  });
}

}  // namespace monarch::daemon
