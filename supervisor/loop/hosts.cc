#include "supervisor/loop/hosts.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "supervisor/client/continuation.h"
#include "supervisor/client/job_view.h"
#include "supervisor/client/link/viewer_json.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/core/job/operator_request.h"
#include "supervisor/core/state/foreseen_end.h"
#include "supervisor/launch/local/local_launcher.h"
#include "supervisor/launch/open_launcher.h"
#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/log.h"
#include "transport/base/loopback.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Of a host that nothing new starts on: was it who gave it that wanted that, and no person?
bool is_left_by(const std::string& giver, const HostState& host) {
  return host.standing == HostStanding::kDrained && host.lost_because.starts_with(text("drained, asked by ", giver));
}

// Those of a job are counted upwards: by terms, and within one by the time of their launch.
std::uint64_t worker_number(Term term, Instant launched) {
  constexpr unsigned kTermShift = 40;
  const auto milliseconds = static_cast<std::uint64_t>(launched.since_boot().count_milliseconds());
  return (term.value() << kTermShift) + (milliseconds & ((std::uint64_t{1} << kTermShift) - 1));
}

// A launch costs a few milliseconds: so many of them, and then the loop hears.
constexpr std::size_t kLaunchesATurn = 8;
constexpr Duration kLookWhoJoinedEvery = Duration::milliseconds(10);

// For an answer of Slurm's, where nodes are not taken by a time, or are any moment.
constexpr Duration kLeastPatience = Duration::seconds(10);

}  // namespace

Hosts::~Hosts() { shared_.loop->cancel(launch_timer_); }

Status Hosts::open() {
  MONARCH_ASSIGN(guard_,
                 Guard::create(*shared_.loop, UniqueFd(shared_.options.keeper_fd), shared_.job,
                               {.on_hello = [this](const KeeperHello& hello) { launcher_->on_hello(hello); },
                                .on_changed = [this](const RankReport& report) { launcher_->on_changed(report); },
                                .on_lost =
                                    [this](const Error& error) {
                                      shared_.announce(EventKind::kGuardLost, Severity::kWarning,
                                                       text("the guard of the supervisor has gone (", error.message,
                                                            "): a crash would not be mended"));
                                      launcher_->on_guard_lost();
                                    }}));
  const LaunchSurroundings around{.loop = *shared_.loop,
                                  .guard = *guard_,
                                  .spec = shared_.spec(),
                                  .hosts = shared_.core.hosts(),
                                  .directory = shared_.files.directory,
                                  .runtime = *shared_.runtime,
                                  .job = shared_.job,
                                  .job_id = shared_.files.job_id,
                                  .term = shared_.term(),
                                  .worker_path = shared_.options.worker_path,
                                  .log_directory = shared_.files.log_directory(),
                                  .control_port = workers_.ports().control,
                                  .bulk_port = workers_.ports().bulk,
                                  .seed = static_cast<std::uint64_t>(::getpid()) ^
                                          static_cast<std::uint64_t>(shared_.started.nanoseconds_since_epoch),
                                  .accept_new_host_keys = shared_.options.accept_new_host_keys,
                                  .returned = shared_.returned};
  MONARCH_ASSIGN(launcher_, open_launcher(around, launcher_handlers()));
  return {};
}

LauncherHandlers Hosts::launcher_handlers() {
  const auto& say = shared_.announce;
  return {
      .on_launched =
          [this](HostId host, LaunchedWorker worker) {
            (void)shared_.decide(WorkerLaunched{.host = host, .worker = std::move(worker)});
            workers_.publish_keys();
          },
      .on_failed =
          [this](HostId host, LaunchFailure failure) {
            (void)shared_.decide(WorkerLaunchFailed{.host = host, .failure = bounded(std::move(failure))});
          },
      .on_ended =
          [this](HostId host, std::string how, bool orderly) {
            workers_.links().tell_steps(host);
            workers_.links().stop_expecting(host);
            (void)shared_.decide(WorkerEnded{.host = host, .how = std::move(how), .orderly = orderly});
          },
      .say = say,
      .on_sending = [say](std::string words) { say(EventKind::kWorkspaceSending, Severity::kInfo, std::move(words)); },
      .on_seen = [this](HostId host, const SecondPath& seen) { on_seen(host, seen); },
      .on_named =
          [this](HostId host, const std::string& machine, std::string how) {
            (void)shared_.decide(HostNamed{.host = host, .name = machine, .how = std::move(how)});
            return shared_.name_of(host);
          },
      .on_node_seen = [this](HostId host, const SeenNode& seen) { on_node_seen(host, seen); },
      .on_foreseen = [this](const EndForeseen& event) { on_end_foreseen(event); },
      .on_over = [this](StopRequest request) { (void)shared_.decide(StopOrdered{.request = std::move(request)}); }};
}

void Hosts::adopt() {
  for (std::uint32_t i = 0; i < shared_.core.state().hosts.size(); ++i) {
    const HostState& host = shared_.core.facts().host(HostId(i));
    const bool gone = is_cold(host.phase) || is_out(host.phase);
    if (is_joined(host.phase)) workers_.links().expect_again(HostId(i));
    if (gone) continue;
    launcher_->adopt(HostId(i), {.runs = is_joined(host.phase) || is_launched(host.phase),
                                 .control_endpoint = host.control_endpoint,
                                 .bulk_endpoint = host.bulk_endpoint});
  }
}

void Hosts::destroy(HostId host) {
  // The worker's end was told while this order waited for the disk, and another launch was ordered since: a second word
  // of that end would be taken for the end of the next worker.
  const HostState& state = shared_.core.facts().host(host);
  if (is_launching(state.phase) && !state.unproven) return;
  workers_.links().tell_steps(host);
  workers_.links().stop_expecting(host);
  launches_.forget(host);
  launcher_->destroy(host);
}

void Hosts::shut_down(HostId host) {
  workers_.links().stop_expecting(host);
  launcher_->stop_doubting(host);
}

Bootstrap Hosts::bootstrap_for(HostId host) const {
  const PoolHost& where = shared_.core.hosts()[host.value()];
  const Supervision& supervision = shared_.spec().supervision;
  Bootstrap bootstrap{.job_id = shared_.files.job_id,
                      .host = host.value(),
                      .host_name = where.name,
                      .term = shared_.term(),
                      .server_public_key = workers_.keys().public_key.to_text(),
                      .control_endpoint = text("tcp://", kLoopbackAddress, ":", workers_.ports().control),
                      .bulk_endpoint = text("tcp://", kLoopbackAddress, ":", workers_.ports().bulk),
                      .heartbeat = supervision.heartbeat,
                      .suspect_after = supervision.suspect_after,
                      .orphan_ttl = supervision.orphan_ttl};
  const CheckpointSpec& checkpoints = shared_.spec().checkpoints;
  if (checkpoints.peer > 0) bootstrap.checkpoint_memory = checkpoints.memory;
  bootstrap.post = shared_.spec().calls;
  bootstrap.one_machine = !shared_.on_machines();
  bootstrap.worker = worker_number(shared_.term(), shared_.core.facts().host(host).launched_at);
  const PortSpan ports = vault_ports(shared_.spec());
  bootstrap.first_port = ports.first;
  bootstrap.last_port = ports.last;
  if (shared_.on_machines()) {
    // Where it keeps its things and who it is, a machine of its own knows by itself.
    bootstrap.copied = true;
    bootstrap.login_environment = true;
    bootstrap.term_foretells = shared_.spec().launch.facts().foretells;
    bootstrap.interface = shared_.spec().network.interface;
  } else {
    bootstrap.state_directory = text(shared_.files.root, "/hosts/", shared_.files.job_id, "/", where.name);
    bootstrap.log_directory = shared_.files.log_directory();
    bootstrap.host_address = where.address;
    bootstrap.socket_directory = local_socket_directory(shared_.runtime->path(), shared_.job, host);
  }
  return bootstrap;
}

// Where somebody else decides when a host comes, in a queue that may take a day, they are asked for all of them.
void Hosts::launch(HostId host) {
  if (!shared_.spec().launch.facts().batch_system.empty()) return launch_now(host);
  launches_.want(host);
  if (launch_timer_ == 0) launch_timer_ = shared_.loop->at(shared_.loop->now(), [this] { launch_some(); });
}

void Hosts::launch_some() {
  launch_timer_ = 0;
  look_who_has_joined();
  std::size_t launched = 0;
  while (launched < kLaunchesATurn) {
    const auto host = launches_.next(shared_.loop->now());
    if (!host) break;
    launch_now(*host);
    ++launched;
  }
  if (launches_.is_idle()) return;
  const Duration pause = launched == kLaunchesATurn ? Duration::zero() : kLookWhoJoinedEvery;
  launch_timer_ = shared_.loop->at(shared_.loop->now() + pause, [this] { launch_some(); });
}

void Hosts::look_who_has_joined() {
  std::vector<HostId> joined;
  std::vector<HostId> out;
  for (const auto& [host, since] : launches_.under_way()) {
    const auto phase = shared_.core.facts().host(host).phase;
    if (is_joined(phase)) joined.push_back(host);
    if (!is_launching(phase) && !is_launched(phase)) out.push_back(host);
  }
  for (const HostId host : joined) launches_.answered(host);
  for (const HostId host : out) launches_.forget(host);
}

void Hosts::launch_now(HostId host) {
  if (shared_.core.facts().host(host).losses > 0) launcher_->check_first(host);
  launcher_->launch(host, bootstrap_for(host));
}

void Hosts::release_helper() {
  if (shared_.core.state().phase != JobPhase::kRunning || !launcher_->has_idle_helper()) return;
  for (const HostState& host : shared_.core.state().hosts) {
    if (is_launching(host.phase) || is_launched(host.phase)) return;
  }
  launcher_->release_helper("the job runs");
}

void Hosts::on_health(const HostVerdict& verdict) {
  const HostId host = verdict.host;
  if (verdict.health != HostHealth::kSuspect) return launcher_->stop_doubting(host);
  // Two that are heard, the next ones after it: other hosts are asked of another one.
  constexpr std::size_t kPeers = 2;
  std::vector<LookPeer> peers;
  const std::size_t hosts = shared_.core.hosts().size();
  for (std::size_t i = 1; i < hosts && peers.size() < kPeers; ++i) {
    const HostId peer(static_cast<std::uint32_t>((host.value() + i) % hosts));
    const bool heard = workers_.links().liveness().health(peer) == HostHealth::kFresh;
    const std::string& address = shared_.core.hosts()[host.value()].address;
    if (heard && !address.empty()) peers.push_back({.host = peer, .suspect_address = address});
  }
  launcher_->doubt(host, peers);
}

// That its worker is gone is the launcher's to prove, and to tell.
void Hosts::on_seen(HostId host, const SecondPath& seen) {
  if (!is_joined(shared_.core.facts().host(host).phase)) return;
  (void)shared_.decide(PeopleTold{.event = told_of(shared_.name_of(host), seen)});
  if (worker_is_gone(seen)) launcher_->destroy(host);
}

// Virtual hosts share a machine that its user sees for himself.
void Hosts::on_pressure(HostId host, const HostPressure& pressure) {
  if (!shared_.on_machines()) return;
  if (auto event = pressures_.note(host, shared_.name_of(host), pressure, shared_.loop->now())) {
    (void)shared_.decide(PeopleTold{.event = std::move(*event)});
  }
}

// Nothing new starts on one that is drained; what runs on one that is down for who gave it ends as soon as it is back
// there, and goes elsewhere before, if there is a host for it.
void Hosts::on_node_seen(HostId host, const SeenNode& seen) {
  const HostState& state = shared_.core.facts().host(host);
  const std::string& name = shared_.name_of(host);
  const std::string& giver = shared_.spec().launch.facts().batch_system;
  if (seen.sight == NodeSight::kWell) {
    if (!is_left_by(giver, state)) return;
    (void)shared_.decide(OperatorAsked{.wish = OperatorWish::kUndrain, .ranks = {}, .hosts = {host}, .who = giver});
    return;
  }
  const std::string who = text(giver, ", which says `", seen.words, "`");
  if (state.standing == HostStanding::kGood) {
    (void)shared_.decide(OperatorAsked{.wish = OperatorWish::kDrain, .ranks = {}, .hosts = {host}, .who = who});
  }
  if (seen.sight != NodeSight::kDown || !is_left_by(giver, state) || !runs_something(host) || !has_free_host()) return;
  const auto plan =
      operator_plan(shared_.core, {.wish = OperatorWish::kDrain, .ranks = {}, .hosts = {name}, .now = true, .who = who},
                    shared_.loop->now());
  if (!plan.ok()) {
    log_warn(name, ": what runs there stays: ", plan.error().message);
    return;
  }
  (void)shared_.decide(plan->event);
}

// Whoever sees it first: what was told before counts.
void Hosts::on_end_foreseen(const EndForeseen& event) {
  const auto& known = shared_.core.state().foreseen;
  if (known && event.by >= known->by) return;  // a record less
  (void)shared_.decide(event);
}

bool Hosts::runs_something(HostId host) const {
  if (!is_joined(shared_.core.facts().host(host).phase)) return false;
  for (std::uint32_t m = 0; m < shared_.core.state().meshes.size(); ++m) {
    const GangRange here = shared_.core.placement().gangs_on(MeshId(m), host);
    for (std::uint32_t g = here.first; g < here.first + here.count; ++g) {
      const auto phase = shared_.core.facts().gang(MeshId(m), GangId(g)).phase;
      if (runs(phase)) return true;
    }
  }
  return false;
}

// One that is connected, and has nothing to do.
bool Hosts::has_free_host() const {
  for (std::uint32_t i = 0; i < shared_.core.state().hosts.size(); ++i) {
    const HostState& host = shared_.core.facts().host(HostId(i));
    const bool serves =
        is_joined(host.phase) && host.standing == HostStanding::kGood && !host.wedged && !host.doubted && !host.failing;
    if (serves && !shared_.core.placement().holds_ranks(HostId(i))) return true;
  }
  return false;
}

void Hosts::prepare_continuation(Verdict& verdict) {
  const LaunchFacts& launch = shared_.spec().launch.facts();
  if (launch.on_preempt == OnPreempt::kStop || verdict.cause.rule != rule_of(launch)) return;
  const bool requeue = launch.on_preempt == OnPreempt::kRequeue;
  bool again = false;
  bool begun = false;
  const auto make = [&]() -> Result<JobDirectory> {
    MONARCH_ASSIGN(const StateDir state, StateDir::open_for_writing(shared_.files.root));
    MONARCH_ASSIGN(const JobDirectory own, state.open_job(shared_.files.job_id));
    const auto known = continued_as(state, own);
    again = known.has_value();
    MONARCH_ASSIGN(JobDirectory next, known ? state.open_job(*known) : make_continuation(state, own));
    MONARCH_ASSIGN(const JobView view, JobView::open(state, next.id));
    if (!view.submitted()) MONARCH_TRY(submit_continuation(next, requeue ? launch.allocation->job : 0));
    begun = !view.queued();
    return next;
  };
  auto next = make();
  if (!next.ok()) {
    log_error("going on: ", next.error().message);
    verdict.reason += text("; it does not go on: ", printable(next.error().message));
    return;
  }
  verdict.reason += text("; it goes on as ", next->id);
  if (begun) return;
  next_ = std::move(*next);
  const Instant by = shared_.core.state().foreseen ? shared_.core.state().foreseen->by : shared_.loop->now();
  continuation_ = launcher_->continuation(
      {.job_id = next_->id,
       .directory = next_->directory.path(),
       .again = again,
       .until = std::clamp(by, shared_.loop->now() + kLeastPatience, shared_.loop->now() + kLeastPatience * 6)},
      [this](const Result<std::uint32_t>& batch_job) { on_continuation(batch_job); });
}

void Hosts::ask_continuation(std::function<void()> then) {
  asked_continuation_ = std::move(then);
  continuation_->ask();
}

// What Slurm refuses, nobody is to wait for. Of what it has not answered to, its queue tells: who waits there looks for
// it.
void Hosts::on_continuation(const Result<std::uint32_t>& batch_job) {
  Status written;
  if (batch_job.ok()) {
    log_info("it goes on as ", next_->id, ", job ", *batch_job, " of Slurm");
    written = submit_continuation(*next_, *batch_job);
  } else if (batch_job.error().code != ErrorCode::kUnsupported) {
    log_error("whether it goes on as ", next_->id, " nobody knows: ", printable(batch_job.error().message));
  } else {
    Verdict verdict;
    verdict.outcome = Outcome::kFailed;
    verdict.exit_code = kExitLost;
    verdict.cause.kind = CauseKind::kStart;
    verdict.cause.summary = text("Slurm did not take it: ", printable(batch_job.error().message));
    verdict.reason = verdict.cause.summary;
    verdict.started = verdict.ended = wall_now();
    log_error("it was to go on as ", next_->id, ": ", verdict.reason);
    written = next_->directory.write_file(kVerdictFile, to_json(verdict_json(verdict)) + "\n");
  }
  if (!written.ok()) log_error(next_->directory.path(), ": ", written.error().message);
  std::exchange(asked_continuation_, nullptr)();
}

}  // namespace monarch
