#include "supervisor/loop/supervisor.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "supervisor/client/job_secrets.h"
#include "supervisor/client/link/endpoint.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/core/job/operator_request.h"
#include "supervisor/core/job/status.h"
#include "supervisor/journal/core_records.h"
#include "supervisor/journal/runtime_dir.h"
#include "supervisor/loop/supervisor_loop.h"
#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/json.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/process/hidden_memory.h"

namespace monarch {

namespace {

// Of one worker on the control port. More are dropped and counted: the next beat says again what it must. Beats keep 1 ms
// between them, and what queues up while nobody reads is well below the burst.
constexpr std::uint32_t kMessagesPerSecond = 2'000;
constexpr std::uint32_t kMessageBurst = 4'000;

constexpr std::size_t kJournalReports = 65'536;

std::string own_boot_id() { return this_process_as_holder(wall_now()).boot_id; }

}  // namespace

int Supervisor::exit_code_for(const Error& why) const {
  if (ports_taken_) return kExitUnreachable;
  if (journal_before_is_lost_) return kExitJournal;
  return why.code == ErrorCode::kInvalid ? kExitUsage : kExitInternal;
}

Status Supervisor::open() {
  // Threads made from here on inherit the mask.
  MONARCH_ASSIGN(signals_, SignalFd::create({SIGTERM, SIGPIPE}));
  MONARCH_ASSIGN(loop_, EventLoop::create());
  zmq_loop_ = std::make_unique<ZmqLoop>(*loop_);
  MONARCH_TRY(replay(files_.journal.contents, core_));
  returned_ = core_.state().phase != JobPhase::kNew;
  if (!returned_) {
    auto continues = inheritance_of(files_);
    journal_before_is_lost_ = !continues.ok();
    MONARCH_ASSIGN(continues_, std::move(continues));
  }
  job_ = returned_ ? core_.state().job : make_job_uuid();
  const auto& records =
      files_.journal.contents.history.empty() ? files_.journal.contents.records : files_.journal.contents.history;
  started_ = records.empty() ? wall_now() : records.front().wall;

  MONARCH_ASSIGN(reports_, WatchedInbox<JournalReport>::create(
                               *loop_, kJournalReports, [this](const JournalReport& report) { on_journal(report); }));
  MONARCH_ASSIGN(auto journal_files, files_.directory.duplicate());
  JournalThreadOptions journal{.files = std::move(files_.journal_files),
                               .writer = std::move(files_.journal.writer),
                               .reports = &reports_->inbox()};
  MONARCH_ASSIGN(journal_, JournalThread::start(std::move(journal)));
  decider_ = std::make_unique<Decider>(
      *loop_, core_, *journal_, files_.journal.term, [this](const Action& action) { perform(action); },
      [this] { (void)decide(DeadlinePassed{}); });
  watch_idleness();
  MONARCH_TRY(open_ports());
  MONARCH_TRY(open_doors());

  const auto on_signal_ready =
      loop_->watch(signals_->descriptor(), Interest::kRead, [this](Readiness) { on_signal(); });
  if (!on_signal_ready.ok()) return on_signal_ready.error();
  return {};
}

Status Supervisor::open_ports() {
  MONARCH_ASSIGN(keys_, job_keys(files_.directory));
  MONARCH_ASSIGN(context_, ZmqContext::create({.io_threads = 2}));
  MONARCH_ASSIGN(zap_, ZapHandler::start(*context_));
  MONARCH_TRY(zap_self_test(*context_, [this](AllowTable table) { return zap_->replace(std::move(table)); }));
  publish_keys();

  ports_ = known_ports(files_.directory);
  ServerOptions control = port_options(ports_.control);
  control.listener = kept_listener(0, ports_.control);
  control.peer = {.per_second = kMessagesPerSecond, .burst = kMessageBurst};
  auto control_link = ServerLink::bind(*context_, control, *keys_);
  if (!control_link.ok()) return port_error(control_link.error());
  control_link_ = std::move(*control_link);
  ServerOptions bulk = port_options(ports_.bulk);
  bulk.listener = kept_listener(1, ports_.bulk);
  bulk.link.io_thread = 1;
  bulk.link.high_water_mark = limits::kBulkHighWaterMark;
  bulk.link.message_bytes = limits::kBulkPayloadBytes;
  auto bulk_link = ServerLink::bind(*context_, bulk, *keys_);
  if (!bulk_link.ok()) return port_error(bulk_link.error());
  ports_ = {.control = control_link_->port(), .bulk = (*bulk_link)->port()};
  for (const ServerLink* link : {control_link_.get(), bulk_link->get()}) {
    MONARCH_ASSIGN(ListenerDoor door, link->door());
    MONARCH_TRY(door.open());  // the supervisor before this one may have closed it
    doors_.push_back(std::move(door));
  }
  MONARCH_TRY(keep_ports(files_.directory, ports_));
  MONARCH_TRY(open_stacks());
  MONARCH_TRY(open_relay(std::move(*bulk_link)));

  hangs_ = std::make_unique<HangWatch>(
      core_,
      HangWatchHandlers{
          .decide = [this](const CoreEvent& event) { (void)decide(event); },
          .dump = [this](RankId rank, const std::function<void(std::string)>& then) { dump_stacks(rank, then); }});
  links_ = std::make_unique<WorkerLinks>(
      *loop_, *control_link_, core_, files_.journal.term, own_boot_id(),
      WorkerLinksHandlers{
          .decide = [this](const CoreEvent& event) { return decide(event); },
          .is_durable = [this](std::uint64_t ticket) { return decider_->durable_ticket() >= ticket; },
          .all_durable = [this] { return decider_->all_durable(); },
          .on_health = [this](HostId host, HostHealth health, Duration silence) { on_health(host, health, silence); },
          .on_pressure = [this](HostId host, const HostPressure& pressure) { on_pressure(host, pressure); },
          .on_output_lost = [this](HostId host, std::uint64_t bytes,
                                   const std::string& failure) { on_output_lost(host, bytes, failure); },
          .on_warned = [this](HostId host) { launcher_->on_warned(host); },
          .on_output = [this] { idle_->used(); },
          .on_written = written_handler(),
          .on_start = [this](HostId host, const Start& start) { return relay_->started(host, start).ok(); },
          .on_commit = commit_handler(),
          .on_vault = vault_handler(),
          .on_report = [this](HostId host, const RankReport& report,
                              Instant sent_at) { hangs_->on_report(host, report, sent_at, loop_->now()); },
          .on_goodbye = [this](HostId host, const Goodbye& goodbye) { launcher_->on_goodbye(host, goodbye.orderly); },
          .has_successor = [this] { return has_successor(files_.directory, files_.journal.term); },
          .on_superseded =
              [this](Term term) {
                log_error("workers have promised term ", term.value(), ", this is term ", files_.journal.term.value(),
                          ": another supervisor holds the job");
                leave(kExitSuperseded);
              }});
  control_link_->attach(*zmq_loop_, [this](InboundMessage&& message) { links_->on_message(std::move(message)); });
  return {};
}

// Of the supervisor before this one, where the guard has kept it: nobody else can have listened there meanwhile. -1: there is none.
int Supervisor::kept_listener(std::size_t which, std::uint16_t port) const {
  if (which >= options_.kept_fds.size() || port == 0) return -1;
  UniqueFd kept(options_.kept_fds[which]);
  if (!ListenerDoor::listens_at(kept.get(), port) || ::fcntl(kept.get(), F_SETFD, FD_CLOEXEC) != 0) return -1;
  return kept.release();
}

// From now on the guard listens, too: while no supervisor lives, nobody else can take the ports that workers call at.
Status Supervisor::keep_ports_open() {
  std::vector<UniqueFd> listeners;
  for (const ListenerDoor& door : {std::cref(doors_.at(0)), std::cref(doors_.at(1))}) {
    MONARCH_ASSIGN(UniqueFd listener, door.duplicate());
    listeners.push_back(std::move(listener));
  }
  return guard_->keep_open(std::move(listeners));
}

std::function<void(HostId, const RankReport&)> Supervisor::commit_handler() {
  commits_ = std::make_unique<CommitDesk>(
      core_, CommitDeskHandlers{
                 .decide = [this](const CoreEvent& event) { return decide(event); },
                 .is_durable = [this](std::uint64_t ticket) { return decider_->durable_ticket() >= ticket; },
                 .answer = [this](HostId host, const CommitAnswer& answer) { (void)links_->send(host, answer); }});
  return [this](HostId host, const RankReport& report) { commits_->hear(host, report, loop_->now()); };
}

Status Supervisor::open_doors() {
  MONARCH_ASSIGN(guard_,
                 Guard::create(*loop_, UniqueFd(options_.keeper_fd), job_,
                               {.on_hello = [this](const KeeperHello& hello) { launcher_->on_hello(hello); },
                                .on_changed = [this](const RankReport& report) { launcher_->on_changed(report); },
                                .on_lost =
                                    [this](const Error& error) {
                                      announce(EventKind::kGuardLost, Severity::kWarning,
                                               text("the guard of the supervisor has gone (", error.message,
                                                    "): a crash would not be mended"));
                                      launcher_->on_guard_lost();
                                    }}));
  MONARCH_ASSIGN(runtime_, open_runtime_dir(StateEnvironment::of_this_process()));
  MONARCH_TRY(open_launcher());
  MONARCH_ASSIGN(const std::string path, socket_path(*runtime_, files_.job_id + ".sock"));
  MONARCH_ASSIGN(
      viewers_,
      ControlServer::create(
          *loop_, path, job_,
          {.status = [this] { return status(); },
           .stop = [this](const StopRequest& request) { (void)decide(StopOrdered{.request = request}); },
           .signal = [this](const SignalRequest& request,
                            const ControlHandlers::Answer& answer) { signal_ranks(request, answer); },
           .hold = [this](const HoldRequest& request,
                          const ControlHandlers::Answer& answer) { answer_durably(hold_ranks(request), answer); },
           .stacks = [this](const StacksRequest& request,
                            const StackDumps::Answer& answer) { return stacks_->ask_all(request, answer); },
           .operate = [this](const OperatorRequest& request,
                             const ControlHandlers::Answer& answer) { answer_durably(operate(request), answer); },
           .output_viewer =
               [this](UniqueFd socket) {
                 const Status added = relay_->add_viewer(std::move(socket));
                 if (!added.ok()) log_warn("a viewer of output: ", added.error().message);
               },
           .launcher = [this](UniqueFd socket) { return launcher_->take(std::move(socket)); },
           .on_use =
               [this](std::size_t attached) {
                 idle_->used();
                 idle_->viewers(attached);
               }}));
  const Endpoint endpoint{.host = this_process_as_holder(wall_now()).host,
                          .pid = static_cast<std::int32_t>(::getpid()),
                          .term = files_.journal.term,
                          .socket = path,
                          .viewers = open_viewer_port(path)};
  return files_.directory.write_file(kEndpointFile, write_endpoint(endpoint),
                                     Durability::kLater);  // each supervisor's own
}

// First to who starts another one: whoever else hears of it counts on that.
void Supervisor::say_ready(int ready_fd) {
  if (const Status said = guard_->say_ready(); !said.ok()) log_warn("the guard: ", said.error().message);
  if (const Status kept = keep_ports_open(); !kept.ok()) log_warn("the guard: ", kept.error().message);
  write_ready(ready_fd, {});
}

void Supervisor::begin() {
  watch_descriptors();
  for (const std::string& note : files_.spec.notes) log_info(note);
  for (const auto* records : {&files_.journal.contents.history, &files_.journal.contents.records}) {
    for (const Record& record : *records) {
      if (record.type != RecordType::kEvent) continue;
      if (auto event = decode_job_event(record.payload); event.ok()) viewers_->remember(std::move(*event));
    }
  }
  if (!returned_) {
    for (std::vector<InheritedGang>& part : in_parts(continues_.gangs)) (void)decide(GangsInherited{std::move(part)});
    (void)decide(JobBegun{.term = files_.journal.term,
                          .job = job_,
                          .boot_id = own_boot_id(),
                          .continues = continues_.job,
                          .lost = continues_.lost});
    launcher_->begin();
    return;
  }
  log_warn("this is term ", files_.journal.term.value(), ": the supervisor before it ended unexpectedly");
  if (core_.state().phase == JobPhase::kEnded) {
    // It crashed between the end of the job and its own.
    finish(FinishJob{.verdict = *core_.state().verdict});
    return;
  }
  for (std::uint32_t i = 0; i < core_.state().hosts.size(); ++i) {
    const HostState& host = core_.state().hosts[i];
    const bool gone =
        host.phase == HostPhase::kCold || host.phase == HostPhase::kEnded || host.phase == HostPhase::kLost;
    if (host.phase == HostPhase::kJoined) links_->expect_again(HostId(i));
    if (gone) continue;
    launcher_->adopt(HostId(i), {.runs = host.phase == HostPhase::kJoined || host.phase == HostPhase::kLaunched,
                                 .control_endpoint = host.control_endpoint,
                                 .bulk_endpoint = host.bulk_endpoint});
  }
  SupervisorReturned returned{.term = files_.journal.term, .boot_id = own_boot_id()};
  const JournalContents& contents = files_.journal.contents;
  if (const auto& records = contents.records.empty() ? contents.history : contents.records; !records.empty()) {
    returned.last_seen = records.back().now;
    const std::int64_t away = wall_now().nanoseconds_since_epoch - records.back().wall.nanoseconds_since_epoch;
    returned.away = std::max(Duration::nanoseconds(away), Duration::zero());
  }
  (void)decide(returned);
  launcher_->begin();
}

int Supervisor::run() {
  zmq_loop_->run();
  journal_->begin_stop();
  return exit_code_;
}

std::uint64_t Supervisor::decide(const CoreEvent& event) {
  const std::uint64_t ticket = decider_->decide(event);
  if (vaults_) vaults_->changed(ticket);
  if (core_.state().phase == JobPhase::kRunning) idle_->begin();
  release_launcher();
  return ticket;
}

void Supervisor::perform(const Action& action) {
  if (const auto* a = std::get_if<LaunchWorker>(&action)) return launch(a->host);
  if (const auto* a = std::get_if<SendShutdown>(&action)) {
    links_->stop_expecting(a->host);
    launcher_->stop_doubting(a->host);
  }
  if (const auto* a = std::get_if<DestroyWorker>(&action)) {
    links_->stop_expecting(a->host);
    return launcher_->destroy(a->host);
  }
  if (const auto* a = std::get_if<EmitEvent>(&action)) {
    const std::string line = text(name_of(a->event.kind), ": ", a->event.message);
    a->event.severity == Severity::kInfo ? log_info(line) : log_warn(line);
    return viewers_->publish(a->event);
  }
  if (const auto* a = std::get_if<FinishJob>(&action)) return finish(*a);
  links_->perform(action);
}

// The table follows from the state: whose key is known and who has not ended may connect.
void Supervisor::publish_keys() {
  AllowTable table;
  const auto& hosts = core_.state().hosts;
  for (std::uint32_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i].public_key.empty() || hosts[i].phase == HostPhase::kEnded) continue;
    const auto key = CurvePublicKey::parse(hosts[i].public_key);
    if (key.ok()) table.users[*key] = user_id_of(HostId(i));
  }
  const Status replaced = zap_->replace(std::move(table));
  if (!replaced.ok()) log_error("the table of keys: ", replaced.error().message);
}

void Supervisor::on_signal() {
  while (const auto signal = signals_->next()) {
    if (signal->number == SIGPIPE) continue;
    StopRequest request{.who = text(signal_name(signal->number), " to the supervisor, from pid ", signal->sender_pid)};
    request.how = core_.state().phase >= JobPhase::kStopping ? StopHow::kKill : StopHow::kOrderly;
    (void)decide(StopOrdered{.request = std::move(request)});
  }
}

JobStatus Supervisor::status() const {
  JobStatus status = status_of(core_, files_.job_id, loop_->now());
  status.supervisor_pid = static_cast<std::int32_t>(::getpid());
  status.started = started_;
  links_->add_progress(status);
  for (std::uint32_t m = 0; m < status.meshes.size(); ++m) {
    for (RankStatus& rank : status.meshes[m].ranks) rank.watched = !core_.is_left_alone({MeshId(m), Rank(rank.rank)});
  }
  for (std::size_t i = 0; i < status.hosts.size(); ++i) {
    const HostId host(static_cast<std::uint32_t>(i));
    HostStatus& shown = status.hosts[i];
    if (links_->liveness().health(host) == HostHealth::kSuspect) {
      shown.phase = "suspect";
      if (const auto& hold = links_->liveness().hold()) {
        shown.held_milliseconds = std::max(hold->until - loop_->now(), Duration::zero()).count_milliseconds();
      }
    }
    shown.daemon_starts = links_->daemon_starts(host);
    if (core_.state().hosts[i].phase == HostPhase::kJoined) shown.pressure = links_->pressure(host);
    if (shown.pressure) shown.shortage = shortage_of(*shown.pressure);
    if (const std::string failure = losses_.failure(host); !failure.empty()) {
      shown.shortage += text(shown.shortage.empty() ? "" : ", ", "output is in no file: ", printable(failure));
    }
    const Duration silence = links_->liveness().silence(host, loop_->now());
    shown.silent_milliseconds = std::max(silence, Duration::zero()).count_milliseconds();
    shown.round_trip_microseconds = links_->liveness().round_trip(host).count_nanoseconds() / 1'000;
  }
  LinkCounters control = control_link_->counters();
  const LinkDrops& drops = links_->drops();
  control.malformed += drops.malformed;
  status.counters = control.named("control");
  const auto add = [&](const char* name, std::uint64_t count) { status.counters.emplace_back(name, count); };
  add("control.forged", drops.forged);
  add("control.foreign_job", drops.foreign_job);
  add("control.foreign_worker", drops.foreign_worker);
  add("control.stale_link", drops.stale_link);
  add("control.later_term", drops.later_term);
  const auto bulk = relay_->link_counters().named("bulk");
  status.counters.insert(status.counters.end(), bulk.begin(), bulk.end());
  add("supervisor.turned_away", descriptors_->turned_away());
  add("supervisor.local_health", links_->liveness().local_health());
  add("bulk.foreign_job", relay_->foreign_job());
  add("commits.refused", commits_->refused());
  add("viewers.refused", viewers_->refused_peers());
  add("output.dropped_pieces", relay_->dropped_pieces());
  add("output.forged_pieces", relay_->forged_pieces());
  return status;
}

Result<std::string> Supervisor::operate(const OperatorRequest& request) {
  MONARCH_ASSIGN(OperatorPlan plan, operator_plan(core_, request, loop_->now()));
  (void)decide(plan.event);
  return std::move(plan.words);
}

int supervise(const SuperviseOptions& options) {
  log_start({.name = "supervisor", .fd = STDERR_FILENO, .level = LogLevel::kInfo});
  refuse_core_dumps();  // it holds the job's secret key
  hide_memory();
  // A link per host and libzmq's own: at the limit its listener spins. Ranks are forked by keepers and keep what the user has.
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &files);
  }
  const auto refuse = [&](int exit_code, const std::string& why) {
    log_error(why);
    write_ready(options.ready_fd, {.exit_code = exit_code, .message = why});
    return exit_code;
  };
  Started<JobFiles> job = open_job_files(options.job_directory, options.force_takeover);
  if (!job.value) return refuse(job.error.exit_code, job.error.message);
  Supervisor supervisor(*job.value, options);
  if (const Status opened = supervisor.open(); !opened.ok()) {
    // At the first start no worker knows the key: nobody will ask for it again.
    const bool first = job.value->journal.term == Term(1);
    if (first) remove_secrets(job.value->directory);
    return refuse(first ? supervisor.exit_code_for(opened.error()) : kExitInternal, opened.error().message);
  }
  supervisor.say_ready(options.ready_fd);
  supervisor.begin();
  return supervisor.run();
}

}  // namespace monarch
