#include "supervisor/launch/local/local_launcher.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <utility>

#include "supervisor/core/state/first_cause.h"
#include "supervisor/launch/program_pipes.h"
#include "transport/base/limits.h"
#include "transport/base/log.h"
#include "transport/base/marks.h"
#include "transport/base/text.h"
#include "transport/messages/describe_end.h"
#include "transport/process/containment.h"
#include "transport/process/job_marks.h"
#include "transport/process/process_scan.h"
#include "transport/process/spawn.h"
#include "transport/wire/codec.h"
#include "transport/wire/from_host.h"
#include "transport/wire/socket_directory.h"

namespace monarch {

namespace {

// Processes of the guard are keyed like ranks of a mesh that no spec can have.
constexpr MeshId kWorkersMesh(0xFFFF'FFFFU);

// From the fork to the worker's key.
constexpr Duration kBootstrapDeadline = Duration::seconds(30);

constexpr Duration kSweepPeriod = Duration::milliseconds(20);
constexpr Duration kLateSweepPeriod = Duration::seconds(1);
// In which a daemon without its keeper ends what that had kept; it takes milliseconds. Less than lost_after is by
// default: a daemon that stands still would otherwise make its host one that was lost by silence, which is not launched
// again at once.
constexpr Duration kDaemonsOwnTime = Duration::seconds(3);

// " (why)": the last error of a worker's log from that byte on, which says more than its exit code; or empty.
std::string last_error_of(const std::string& log, off_t from) {
  std::ifstream lines(log);
  lines.seekg(from);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t error = line.find(" error [");
    const std::size_t words = line.find("] ", error);
    if (error != std::string::npos && words != std::string::npos) last = line.substr(words + 2);
  }
  return last.empty() ? "" : text(" (", printable(last), ")");
}

RankId key_of(HostId host) { return {kWorkersMesh, Rank(host.value())}; }

}  // namespace

std::string local_socket_directory(const std::string& runtime_directory, const JobUuid& job, HostId host) {
  return text(runtime_directory, "/", socket_directory_prefix(job.to_text()), host.value());
}

LocalLauncher::LocalLauncher(EventLoop& loop, Guard& guard, LocalLauncherOptions options, LauncherHandlers handlers)
    : loop_(loop), guard_(guard), options_(std::move(options)), handlers_(std::move(handlers)) {}

LocalLauncher::~LocalLauncher() {
  while (!pending_.empty()) drop_pending(pending_.begin()->first);
  for (const auto& [host, worker] : started_) loop_.forget(worker.watch);
}

std::string LocalLauncher::log_of(HostId host) const {
  return text(options_.log_directory, "/worker.", options_.host_names[host.value()], ".log");
}

void LocalLauncher::launch(HostId host, const Bootstrap& bootstrap) {
  launched_at_[host] = loop_.now();
  daemons_.erase(host);
  alone_.erase(host);
  if (!bootstrap.post && bootstrap.checkpoint_memory == 0) alone_.insert(host);
  const Status status = start(host, bootstrap);
  if (!status.ok()) fail(host, status.error().message);
}

Status LocalLauncher::start(HostId host, const Bootstrap& bootstrap) {
  MONARCH_ASSIGN(ProgramPipe input, make_program_pipe(PipeEnd::kWrite));
  MONARCH_ASSIGN(ProgramPipe output, make_program_pipe(PipeEnd::kRead));
  MONARCH_ASSIGN(UniqueFd log, open_program_log(log_of(host)));
  log_begins_[host] = ::lseek(log.get(), 0, SEEK_END);

  FrameHeader header;
  header.job = options_.job;
  header.term = options_.term;
  const std::string frame = encode_frame({header, encode_payload(bootstrap)});
  // Far below a pipe's 64 KiB: written whole, without waiting for the reader.
  if (::write(input.ours.get(), frame.data(), frame.size()) != static_cast<ssize_t>(frame.size())) {
    return errno_error("writing a worker's bootstrap", errno);
  }
  input.ours.reset();

  const Generation generation{options_.term, ++launches_[host]};  // the guard starts none twice
  const Status spawned =
      guard_.spawn({.key = {key_of(host), generation},
                    .process = {.program = {options_.worker_path, std::string(kJobArgument), options_.job.to_text(),
                                            std::string(kHostArgument), bootstrap.host_name},
                                .env = {},
                                .workdir = "/"},
                    .standard_input = std::move(input.theirs),
                    .standard_output = std::move(output.theirs),
                    .standard_error = std::move(log)});
  if (!spawned.ok()) {
    return Error{spawned.error().code,
                 text("the supervisor's guard, which starts it, does not answer: ", spawned.error().message)};
  }
  started_[host].generation = generation;
  MONARCH_ASSIGN(const WatchId watch,
                 loop_.watch(output.ours.get(), Interest::kRead, [this, host](Readiness) { read_reply(host); }));
  pending_[host] = {.reply = std::move(output.ours),
                    .watch = watch,
                    .deadline = std::make_unique<FairTimer>(loop_),
                    .bytes = {},
                    .control_endpoint = bootstrap.control_endpoint};
  await_key(host);
  return {};
}

void LocalLauncher::await_key(HostId host) {
  pending_.at(host).deadline->start(kBootstrapDeadline, [this, host](const std::string& late) {
    fail(host, text("the worker did not tell its key within ", to_text(kBootstrapDeadline), late));
  });
}

void LocalLauncher::read_reply(HostId host) {
  Pending& pending = pending_.at(host);
  char buffer[4096];
  while (true) {
    const ssize_t n = ::read(pending.reply.get(), buffer, sizeof buffer);
    if (n > 0) {
      pending.bytes.append(buffer, static_cast<std::size_t>(n));
      if (pending.bytes.size() > limits::kSeqpacketInlineBytes) return fail(host, "the worker's answer is too long");
      continue;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    return finish_reply(host);
  }
}

void LocalLauncher::finish_reply(HostId host) {
  const std::string bytes = std::move(pending_.at(host).bytes);
  if (bytes.empty()) {
    // How it ended says more than its closed pipe: the guard is about to tell, if it lives.
    loop_.forget(std::exchange(pending_.at(host).watch, 0));
    if (guard_lost_) never_started(host);
    return;
  }
  const auto frame = decode_frame(bytes, limits::kSeqpacketInlineBytes);
  if (!frame.ok()) return fail(host, text("the worker's answer: ", frame.error().message));
  auto reply = decode_from_host<BootstrapReply>(frame->payload);
  if (!reply.ok()) return fail(host, text("the worker's answer: ", reply.error().message));
  if (!reply->error.empty()) return fail(host, reply->error);
  if (reply->version != MONARCH_VERSION) {
    return fail(host, text("the worker is of version ", printable(reply->version), ", this is " MONARCH_VERSION));
  }
  std::string endpoint = std::move(pending_.at(host).control_endpoint);
  drop_pending(host);
  handlers_.on_launched(host, {.reply = std::move(*reply), .control_endpoint = std::move(endpoint), .again = {}});
}

void LocalLauncher::drop_pending(HostId host) {
  const auto found = pending_.find(host);
  if (found == pending_.end()) return;
  loop_.forget(found->second.watch);
  pending_.erase(found);
}

void LocalLauncher::fail(HostId host, std::string error) {
  drop_pending(host);
  handlers_.on_failed(host, LaunchFailure{.kind = LaunchFailureKind::kOther,
                                          .phase = "start",
                                          .elapsed = loop_.now() - launched_at_[host],
                                          .message = std::move(error),
                                          .words = {},
                                          .again = {}});
}

// The guard ended with the order unread, or its worker did before anybody was told its pid: nothing holds its output
// any more.
void LocalLauncher::never_started(HostId host) {
  const auto found = started_.find(host);
  if (found != started_.end() && found->second.pidfd.valid()) return;  // its pidfd tells
  started_.erase(host);
  fail(host, "the worker ended before it told its key; how is not known: the supervisor's guard has gone");
}

void LocalLauncher::destroy(HostId host) {
  drop_pending(host);
  if (ending_.contains(host)) return;
  const auto found = started_.find(host);
  if (found == started_.end() && !inventory_known_ && !guard_lost_) {
    to_destroy_.insert(host);
    return;
  }
  if (found == started_.end()) {
    // It was never started, or its end was told; that may have been to a supervisor that died before it had removed
    // what was left.
    begin_telling(host, {.how = "was not running", .orderly = true});
    return;
  }
  if ((guard_lost_ || found->second.orphan) && found->second.pidfd.valid()) {
    // Its daemon sees the keeper's end and kills what it kept.
    (void)send_signal(found->second.pidfd.get(), SIGKILL);  // one that has ended is what was wanted
    return;
  }
  const Status status = guard_.kill({key_of(host), found->second.generation});
  if (!status.ok()) log_error("destroying worker ", host.value(), ": ", status.error().message);
}

// It is what its marks say, or it proves nothing.
void LocalLauncher::on_greeted(HostId host, std::int32_t daemon_pid) {
  daemons_.erase(host);
  const auto process = read_process(daemon_pid);
  if (!process || process->dead()) return;
  UniqueFd pidfd = open_process(*process);
  const auto mark = worker_mark(daemon_pid);
  const bool is_its =
      mark && !mark->keeper && mark->uuid == options_.job.to_text() && mark->host == options_.host_names[host.value()];
  if (pidfd.valid() && is_its) daemons_.emplace(host, std::move(pidfd));
}

void LocalLauncher::on_hello(const KeeperHello& hello) {
  for (const RankId& spawned : hello.spawned) {
    if (spawned.mesh != kWorkersMesh) continue;
    log_info("host ", spawned.rank.value(), ": the guard kept its worker");
    awaited_.insert(HostId(spawned.rank.value()));
  }
  greeted_ = true;
  check_inventory();
}

void LocalLauncher::check_inventory() {
  if (greeted_ && awaited_.empty() && !inventory_known_) know_inventory();
}

void LocalLauncher::know_inventory() {
  inventory_known_ = true;
  for (const HostId host : std::exchange(to_adopt_, {})) {
    if (!started_.contains(host)) adopt_orphan(host);
  }
  for (const HostId host : std::exchange(to_destroy_, {})) destroy(host);
}

void LocalLauncher::adopt(HostId host, const AdoptedHost&) {
  if (!inventory_known_) to_adopt_.insert(host);
}

// The marks of a worker, of this job and this host, nobody else has.
void LocalLauncher::adopt_orphan(HostId host) {
  const std::string& name = options_.host_names[host.value()];
  for (const ProcessEntry& entry : list_processes()) {
    if (entry.dead()) continue;
    const auto is_it = [&] {
      const auto mark = worker_mark(entry.pid);
      return mark && mark->keeper && mark->uuid == options_.job.to_text() && mark->host == name;
    };
    if (!is_it()) continue;
    UniqueFd pidfd = open_process(entry);
    if (!pidfd.valid() || !is_it()) continue;  // it ended meanwhile
    log_info(name, ": its worker, pid ", entry.pid, ", has outlived its guard");
    Worker& worker = started_[host];
    worker.pidfd = std::move(pidfd);
    worker.orphan = true;
    return watch_directly(host);
  }
  begin_telling(host, {.how = "it ended while no supervisor was there", .orderly = false});
}

void LocalLauncher::on_changed(const RankReport& report) {
  if (report.process.rank.mesh != kWorkersMesh) return;
  note(report);
  awaited_.erase(HostId(report.process.rank.rank.value()));
  check_inventory();
}

void LocalLauncher::note(const RankReport& report) {
  const HostId host(report.process.rank.rank.value());
  // A supervisor that came back is told of each worker by its predecessor, right after the guard's hello.
  const auto [found, is_new] = started_.try_emplace(host);
  if (is_new) found->second.generation = report.process.generation;
  if (found->second.generation != report.process.generation) return;
  if (report.phase != RankPhase::kEnded) return learn_pid(found->second, report.pid);
  started_.erase(found);
  to_adopt_.erase(host);                // its end is told
  (void)guard_.forget(report.process);  // if it is lost, the guard forgets at its own end
  const bool orderly = report.end.kind == EndKind::kExited && report.end.value == 0;
  const bool says_why = report.end.kind == EndKind::kExited && !orderly;
  std::string how = text(describe_end(report.end), says_why ? last_error_of(log_of(host), log_begins_[host]) : "");
  if (pending_.contains(host)) {
    // Its last words may still be in the pipe; they say more than its exit code.
    read_reply(host);
    if (pending_.contains(host)) fail(host, text("the worker ended before it told its key: ", how));
  }
  begin_telling(host, {.how = std::move(how), .orderly = orderly, .reaped = orderly});
}

// Each end once, and not from within the call that brings it.
void LocalLauncher::begin_telling(HostId host, WorkerEnd end) {
  if (!ending_.insert(host).second) return;
  end.kill_at = loop_.now() + kDaemonsOwnTime;
  end.complain_at = end.kill_at + limits::kKillDeadline;
  loop_.defer([this, host, end] { tell_ended(host, end); });
}

// A worker has ended when nothing of it lives: a keeper and a daemon that were killed together leave their ranks'
// groups, and a daemon whose keeper was killed ends what that had kept, and then removes what the next worker would
// find in its place. What is told is taken as proof, so an end that cannot be seen is never told: who waits for it has
// a deadline and a fence.
void LocalLauncher::tell_ended(HostId host, const WorkerEnd& end) {
  const bool swept = sweep_groups({.job = options_.job.to_text(), .host = options_.host_names[host.value()]});
  if (swept && is_proven(host, end)) return report_end(host, end);
  look_who_lives(end.kill_at - kDaemonsOwnTime);
  if (!still_lives(host, loop_.now() >= end.kill_at) && swept) return report_end(host, end);
  const bool complains = loop_.now() >= end.complain_at;
  WorkerEnd next = end;
  if (complains) {
    log_error(options_.host_names[host.value()], ": processes of its worker could not be killed");
    next.complain_at = Instant::never();
  }
  const Duration pause = loop_.now() < end.kill_at + limits::kKillDeadline ? kSweepPeriod : kLateSweepPeriod;
  (void)loop_.at(loop_.now() + pause, [this, host, next] { tell_ended(host, next); });
}

// By what is in hand: looking at all processes of the machine costs the more the larger it is.
bool LocalLauncher::is_proven(HostId host, const WorkerEnd& end) const {
  const auto daemon = daemons_.find(host);
  if (!end.reaped || !alone_.contains(host) || daemon == daemons_.end()) return false;
  pollfd ended{daemon->second.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) == 1;
}

// All processes are looked at, of however many hosts it is asked: what was seen a moment ago will do, unless that was
// before the end was told.
void LocalLauncher::look_who_lives(Instant told_at) {
  if (looked_at_ >= told_at && loop_.now() < looked_at_ + kSweepPeriod / 2) return;
  looked_at_ = loop_.now();
  living_.clear();
  for (const ProcessEntry& entry : list_processes()) {
    if (entry.dead()) continue;
    const auto mark = worker_mark(entry.pid);
    if (mark && mark->uuid == options_.job.to_text()) living_.emplace(mark->host, entry);
  }
}

// Its keeper or daemon, by their marks; `kill`: it has had its time.
bool LocalLauncher::still_lives(HostId host, bool kill) const {
  bool found = false;
  const auto [first, last] = living_.equal_range(options_.host_names[host.value()]);
  for (auto living = first; living != last; ++living) {
    const ProcessEntry& entry = living->second;
    const auto is_it = [&] {
      const auto mark = worker_mark(entry.pid);
      return mark && mark->uuid == options_.job.to_text() && mark->host == options_.host_names[host.value()];
    };
    if (!is_it()) continue;
    found = true;
    if (!kill) return true;
    const UniqueFd pidfd = open_process(entry);
    if (pidfd.valid() && is_it()) (void)send_signal(pidfd.get(), SIGKILL);  // one that has ended is what was wanted
  }
  return found;
}

// A worker removes its sockets itself, unless it was killed.
void LocalLauncher::report_end(HostId host, const WorkerEnd& end) {
  const std::string sockets = local_socket_directory(options_.runtime_directory, options_.job, host);
  if (!remove_socket_directory(sockets)) log_warn(sockets, " could not be removed");
  ending_.erase(host);
  daemons_.erase(host);
  handlers_.on_ended(host, end.how, end.orderly);
}

// WARNING: a number may have got a new owner since the guard told it. A process that is the guard's child, as we are,
// is the worker: the guard gives no number free before it has told its end, and nobody else's child is its child.
void LocalLauncher::learn_pid(Worker& worker, std::int32_t pid) {
  if (worker.pidfd.valid() || pid <= 0) return;
  const auto process = read_process(pid);
  if (process && !process->dead() && process->parent == ::getppid()) worker.pidfd = open_process(*process);
}

void LocalLauncher::on_guard_lost() {
  if (std::exchange(guard_lost_, true)) return;
  for (auto& [host, worker] : started_) watch_directly(host);
  if (!inventory_known_) know_inventory();
  std::vector<HostId> silent;
  for (const auto& [host, pending] : pending_) {
    if (pending.watch == 0) silent.push_back(host);
  }
  for (const HostId host : silent) never_started(host);
}

void LocalLauncher::watch_directly(HostId host) {
  Worker& worker = started_.at(host);
  if (worker.watch != 0) return;      // it is watched
  if (!worker.pidfd.valid()) return;  // its end cannot be proven, and the verdict will say so
  const auto watch = loop_.watch(worker.pidfd.get(), Interest::kRead, [this, host](Readiness) {
    const auto found = started_.find(host);
    loop_.forget(found->second.watch);
    started_.erase(found);
    if (pending_.contains(host)) read_reply(host);  // its last words may still be in the pipe
    if (pending_.contains(host)) fail(host, "the worker ended before it told its key");
    begin_telling(host, {.how = "seen by its pidfd, without the guard", .orderly = false});
  });
  if (watch.ok()) worker.watch = *watch;
}

}  // namespace monarch
