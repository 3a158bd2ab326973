#include "supervisor/loop/supervisor.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>

#include "supervisor/client/job_secrets.h"
#include "supervisor/client/link/viewer_json.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/core/job/status.h"
#include "supervisor/journal/core_records.h"
#include "supervisor/journal/runtime_dir.h"
#include "supervisor/loop/decider.h"
#include "supervisor/loop/hosts.h"
#include "supervisor/loop/shared.h"
#include "supervisor/loop/startup.h"
#include "supervisor/loop/viewers.h"
#include "supervisor/loop/workers.h"
#include "supervisor/workspace/pack.h"
#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/json.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/loop/signals.h"
#include "transport/process/hidden_memory.h"
#include "transport/wire/codec.h"
#include "transport/zmq/zmq_loop.h"

namespace monarch {

namespace {

constexpr std::size_t kJournalReports = 65'536;
// How long viewers and the guard may take to read the last words.
constexpr Duration kFarewellDeadline = Duration::seconds(1);

// It owns everything of a running supervisor and decides nothing: what comes in becomes events of the core, and what
// the core decides is journalled and done, by those who have the workers, the hosts and the viewers. Its members are
// destroyed in the reverse order.
class Supervisor {
 public:
  Supervisor(JobFiles& files, const SuperviseOptions& options)
      : core_(files.spec.spec, pool_of(files.spec.spec),
              {.job_id = files.job_id, .shell = files.shell, .log_directory = files.log_directory()}),
        shared_{.files = files, .options = options, .core = core_} {}

  // Who looks on hears of the end before launchers and disks are waited for.
  ~Supervisor() {
    if (viewers_) viewers_->close();
  }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  Status open();
  // Why open() failed, to whoever waits for the start.
  int exit_code_for(const Error& why) const;
  void say_ready(int ready_fd);
  void begin();
  int run();

 private:
  Status open_journal();
  Status open_owners();
  Status keep_ports_open();
  void perform(const Action& action);
  void finish(const FinishJob& finish);
  void farewell(Instant until);
  void leave(int exit_code);
  void step_down(const Error& why);
  void announce(EventKind kind, Severity severity, std::string message);
  void on_signal();
  void on_journal(const JournalReport& report);
  std::uint64_t decide(const CoreEvent& event);

  JobCore core_;
  Shared shared_;
  Inheritance continues_;                // of a job that begins; of no job: it is the first
  bool journal_before_is_lost_ = false;  // of the job that this one goes on from
  std::unique_ptr<ZmqLoop> zmq_loop_;
  std::unique_ptr<SignalFd> signals_;
  std::unique_ptr<WatchedInbox<JournalReport>> reports_;
  std::unique_ptr<JournalThread> journal_;
  std::unique_ptr<Decider> decider_;
  // The viewers' port is there longer than all whose words it carries.
  std::unique_ptr<Viewers> viewers_;
  std::unique_ptr<Workers> workers_;
  std::unique_ptr<Hosts> hosts_;
  int exit_code_ = kExitInternal;
  bool leaving_ = false;
  RecordsDurable last_durable_;
};

std::string own_boot_id() { return this_process_as_holder(wall_now()).boot_id; }

int Supervisor::exit_code_for(const Error& why) const {
  if (workers_ && workers_->ports_taken()) return kExitUnreachable;
  if (journal_before_is_lost_) return kExitJournal;
  return why.code == ErrorCode::kInvalid ? kExitUsage : kExitInternal;
}

Status Supervisor::open() {
  // Threads made from here on inherit the mask.
  MONARCH_ASSIGN(signals_, SignalFd::create({SIGTERM, SIGPIPE}));
  MONARCH_ASSIGN(shared_.loop, EventLoop::create());
  zmq_loop_ = std::make_unique<ZmqLoop>(*shared_.loop);
  MONARCH_TRY(replay(shared_.files.journal.contents, core_));
  shared_.returned = core_.state().phase != JobPhase::kNew;
  if (!shared_.returned) {
    auto continues = inheritance_of(shared_.files);
    journal_before_is_lost_ = !continues.ok();
    MONARCH_ASSIGN(continues_, std::move(continues));
  }
  shared_.job = shared_.returned ? core_.state().job : make_job_uuid();
  const auto& records = shared_.files.journal.contents.history.empty() ? shared_.files.journal.contents.records
                                                                       : shared_.files.journal.contents.history;
  shared_.started = records.empty() ? wall_now() : records.front().wall;

  MONARCH_TRY(open_journal());
  MONARCH_TRY(open_owners());
  const auto on_signal_ready =
      shared_.loop->watch(signals_->descriptor(), Interest::kRead, [this](Readiness) { on_signal(); });
  return on_signal_ready.ok() ? Status() : Status(on_signal_ready.error());
}

Status Supervisor::open_journal() {
  MONARCH_ASSIGN(reports_,
                 WatchedInbox<JournalReport>::create(*shared_.loop, kJournalReports,
                                                     [this](const JournalReport& report) { on_journal(report); }));
  MONARCH_ASSIGN(auto journal_files, shared_.files.directory.duplicate());
  JournalThreadOptions journal{.files = std::move(shared_.files.journal_files),
                               .writer = std::move(shared_.files.journal.writer),
                               .reports = &reports_->inbox()};
  MONARCH_ASSIGN(journal_, JournalThread::start(std::move(journal)));
  decider_ = std::make_unique<Decider>(
      *shared_.loop, core_, *journal_, shared_.files.journal.term, [this](const Action& action) { perform(action); },
      [this] { (void)decide(DeadlinePassed{}); });
  shared_.decide = [this](const CoreEvent& event) { return decide(event); };
  shared_.is_durable = [this](std::uint64_t ticket) { return decider_->durable_ticket() >= ticket; };
  shared_.all_durable = [this] { return decider_->all_durable(); };
  shared_.when_durable = [this](std::function<void()> then) { decider_->when_durable(std::move(then)); };
  shared_.announce = [this](EventKind kind, Severity severity, std::string message) {
    announce(kind, severity, std::move(message));
  };
  shared_.leave = [this](int exit_code) { leave(exit_code); };
  return {};
}

Status Supervisor::open_owners() {
  workers_ = std::make_unique<Workers>(
      shared_,
      WorkersHandlers{
          .on_health = [this](const HostVerdict& verdict) { hosts_->on_health(verdict); },
          .on_pressure = [this](HostId host, const HostPressure& pressure) { hosts_->on_pressure(host, pressure); },
          .on_warned = [this](HostId host) { hosts_->launcher().on_warned(host); },
          .on_greeted = [this](HostId host, std::int32_t daemon) { hosts_->launcher().on_greeted(host, daemon); },
          .on_goodbye = [this](HostId host, bool orderly) { hosts_->launcher().on_goodbye(host, orderly); },
          .on_output = [this] { viewers_->idle().used(); }});
  hosts_ = std::make_unique<Hosts>(shared_, *workers_);
  viewers_ = std::make_unique<Viewers>(shared_, *workers_, *hosts_);
  MONARCH_TRY(workers_->open());
  workers_->attach(*zmq_loop_);
  MONARCH_ASSIGN(shared_.runtime, open_runtime_dir(StateEnvironment::of_this_process()));
  MONARCH_TRY(hosts_->open());
  return viewers_->open();
}

// From now on the guard listens, too: while no supervisor lives, nobody else can take the ports that workers call at.
Status Supervisor::keep_ports_open() {
  std::vector<UniqueFd> listeners;
  for (const ListenerDoor& door : workers_->doors()) {
    MONARCH_ASSIGN(UniqueFd listener, door.duplicate());
    listeners.push_back(std::move(listener));
  }
  return hosts_->guard().keep_open(std::move(listeners));
}

// First to who starts another one: whoever else hears of it counts on that.
void Supervisor::say_ready(int ready_fd) {
  if (const Status said = hosts_->guard().say_ready(); !said.ok()) log_warn("the guard: ", said.error().message);
  if (const Status kept = keep_ports_open(); !kept.ok()) log_warn("the guard: ", kept.error().message);
  write_ready(ready_fd, {});
}

void Supervisor::begin() {
  viewers_->watch_descriptors();
  for (const std::string& note : shared_.files.spec.notes) log_info(note);
  viewers_->remember_history();
  if (!shared_.returned) {
    decider_->with_next(files_of_ports());
    for (std::vector<InheritedGang>& part : in_parts(continues_.gangs)) (void)decide(GangsInherited{std::move(part)});
    (void)decide(JobBegun{.term = shared_.files.journal.term,
                          .job = shared_.job,
                          .boot_id = own_boot_id(),
                          .continues = continues_.job,
                          .lost = continues_.lost});
    hosts_->launcher().begin();
    return viewers_->watch_tie();
  }
  log_warn("this is term ", shared_.files.journal.term.value(), ": the supervisor before it ended unexpectedly");
  if (core_.state().phase == JobPhase::kEnded) {
    // It crashed between the end of the job and its own.
    finish(FinishJob{.verdict = *core_.state().verdict});
    return;
  }
  decider_->with_next(files_of_ports());
  hosts_->adopt();
  SupervisorReturned returned{.term = shared_.files.journal.term, .boot_id = own_boot_id()};
  const JournalContents& contents = shared_.files.journal.contents;
  if (const auto& records = contents.records.empty() ? contents.history : contents.records; !records.empty()) {
    returned.last_seen = records.back().now;
    const std::int64_t away = wall_now().nanoseconds_since_epoch - records.back().wall.nanoseconds_since_epoch;
    returned.away = std::max(Duration::nanoseconds(away), Duration::zero());
  }
  (void)decide(returned);
  hosts_->launcher().begin();
  viewers_->watch_tie();
}

int Supervisor::run() {
  zmq_loop_->run();
  journal_->begin_stop();
  return exit_code_;
}

std::uint64_t Supervisor::decide(const CoreEvent& event) {
  const std::uint64_t ticket = decider_->decide(event);
  workers_->changed(ticket);
  if (core_.state().phase == JobPhase::kRunning) viewers_->idle().begin();
  hosts_->release_helper();
  return ticket;
}

void Supervisor::perform(const Action& action) {
  if (const auto* a = std::get_if<LaunchWorker>(&action)) return hosts_->launch(a->host);
  if (const auto* a = std::get_if<DestroyWorker>(&action)) return hosts_->destroy(a->host);
  if (const auto* a = std::get_if<SendShutdown>(&action)) hosts_->shut_down(a->host);
  if (const auto* a = std::get_if<EmitEvent>(&action)) {
    const std::string line = text(name_of(a->event.kind), ": ", a->event.message);
    a->event.severity == Severity::kInfo ? log_info(line) : log_warn(line);
    workers_->told(a->event);
    return viewers_->server().publish(a->event);
  }
  if (const auto* a = std::get_if<FinishJob>(&action)) return finish(*a);
  workers_->perform(action);
}

void Supervisor::on_signal() {
  while (const auto signal = signals_->next()) {
    if (signal->number == SIGPIPE) continue;
    StopRequest request{.who = text(signal_name(signal->number), " to the supervisor, from pid ", signal->sender_pid)};
    request.how = core_.state().phase >= JobPhase::kStopping ? StopHow::kKill : StopHow::kOrderly;
    (void)decide(StopOrdered{.request = std::move(request)});
  }
}

void Supervisor::finish(const FinishJob& finish) {
  Verdict verdict = finish.verdict;
  verdict.started = shared_.started;
  verdict.ended = wall_now();
  workers_->complete(verdict);
  exit_code_ = verdict.exit_code;
  hosts_->prepare_continuation(verdict);
  (void)decider_->append(RecordType::kVerdict, encode_payload(verdict));
  const std::string file = to_json(verdict_json(verdict)) + "\n";
  // Who is told of it finds the file, also after a crash of this machine.
  (void)decider_->write_file({.name = kVerdictFile, .bytes = file}, [this, verdict] {
    remove_secrets(shared_.files.directory);
    WorkspacePack::remove(shared_.files.directory.fd());
    if (!hosts_->goes_on()) return viewers_->server().publish(verdict);
    hosts_->ask_continuation([this, verdict] {
      viewers_->server().publish(verdict);
      (void)decider_->append(RecordType::kClean, {}, [this] { leave(exit_code_); });
    });
  });
  if (!hosts_->goes_on()) (void)decider_->append(RecordType::kClean, {}, [this] { leave(exit_code_); });
}

void Supervisor::leave(int exit_code) {
  if (std::exchange(leaving_, true)) return;
  exit_code_ = exit_code;
  log_info("waits for the disk, one after the other: ", last_durable_.waits, ", and ", last_durable_.unwaited,
           " that nobody waited for");
  const Status told = hosts_->guard().shutdown(exit_code);
  if (!told.ok()) log_error("telling the guard: ", told.error().message);
  farewell(shared_.loop->now() + kFarewellDeadline);
}

void Supervisor::farewell(Instant until) {
  const bool said = viewers_->server().flushed() && hosts_->guard().pending_bytes() == 0;
  if (said || shared_.loop->now() >= until) return shared_.loop->stop();
  (void)shared_.loop->at(shared_.loop->now() + Duration::milliseconds(5), [this, until] { farewell(until); });
}

void Supervisor::on_journal(const JournalReport& report) {
  if (const auto* r = std::get_if<RecordsDurable>(&report)) {
    last_durable_ = *r;
    workers_->links().note_disk(r->took);
    decider_->on_durable(*r);
  } else if (const auto* written = std::get_if<FileWritten>(&report)) {
    decider_->on_answered(written->ticket);
  } else if (const auto* taken = std::get_if<SnapshotTaken>(&report)) {
    decider_->on_answered(taken->ticket);
  } else if (const auto* refused = std::get_if<RequestRefused>(&report)) {
    log_error("journal: ", refused->why.message);
    if (!decider_->on_refused(refused->ticket)) step_down(refused->why);
  } else if (const auto* stuck = std::get_if<JournalStuck>(&report)) {
    announce(EventKind::kJournalStuck, Severity::kError,
             text("the journal cannot be written, decisions wait and ranks go on: ", printable(stuck->why.message)));
  } else if (std::holds_alternative<JournalUnstuck>(report)) {
    announce(EventKind::kJournalMended, Severity::kInfo, "the journal can be written again");
  } else if (const auto* failure = std::get_if<JournalFailed>(&report)) {
    step_down(failure->why);
  }
}

// The journal cannot be continued: nothing more is decided, and the guard ends what it started.
void Supervisor::step_down(const Error& why) {
  decider_->abandon();
  if (leaving_) return;
  Verdict verdict;
  verdict.outcome = Outcome::kFailed;
  verdict.exit_code = kExitJournal;
  verdict.cause.kind = CauseKind::kInternal;
  verdict.cause.summary = text("the journal cannot be written: ", printable(why.message));
  verdict.cause.rule = "journal failed: kill all";
  verdict.reason = verdict.cause.summary;
  verdict.started = shared_.started;
  verdict.ended = wall_now();
  announce(EventKind::kJournalFailed, Severity::kError, text(verdict.reason, ": stepping down"));
  const Status written = shared_.files.directory.write_file(kVerdictFile, to_json(verdict_json(verdict)) + "\n");
  if (!written.ok()) log_error(written.error().message);
  remove_secrets(shared_.files.directory);
  viewers_->server().publish(verdict);
  leave(kExitJournal);
}

// For who looks on now: of things that the journal cannot or need not know.
void Supervisor::announce(EventKind kind, Severity severity, std::string message) {
  JobEvent event;
  event.time = wall_now();
  event.kind = kind;
  event.severity = severity;
  event.message = std::move(message);
  switch (severity) {
    case Severity::kInfo: log_info(event.message); break;
    case Severity::kWarning: log_warn(event.message); break;
    case Severity::kError: log_error(event.message); break;
  }
  viewers_->server().publish(event);
}

}  // namespace

int supervise(const SuperviseOptions& options) {
  log_start({.name = "supervisor", .fd = STDERR_FILENO, .level = LogLevel::kInfo});
  refuse_core_dumps();  // it holds the job's secret key
  hide_memory();
  // A link per host and libzmq's own: at the limit its listener spins. Ranks are forked by keepers and keep what the
  // user has.
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
