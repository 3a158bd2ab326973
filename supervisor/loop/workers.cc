#include "supervisor/loop/workers.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "supervisor/client/stacks/stack_fold.h"
#include "supervisor/core/health/pressure_watch.h"
#include "supervisor/journal/job_lock.h"
#include "supervisor/workers/verdict.h"
#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/limits.h"
#include "transport/base/log.h"
#include "transport/base/loopback.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

// Of one worker on the control port. More are dropped and counted: the next beat says again what it must. Beats keep 1
// ms between them, and what queues up while nobody reads is well below the burst.
constexpr std::uint32_t kMessagesPerSecond = 2'000;
constexpr std::uint32_t kMessageBurst = 4'000;
constexpr std::uint64_t kMessageBytesPerSecond = 16U << 20U;  // beats of some thousand ranks, ten times a second
constexpr std::uint64_t kMessageBytesBurst = 128U << 20U;

// A quarter of all descriptors, whatever hosts send: the rest is for hosts, viewers and the journal.
std::size_t most_copies_open() {
  rlimit files{};
  const bool known = ::getrlimit(RLIMIT_NOFILE, &files) == 0;  // cannot fail
  return std::max<std::size_t>(known ? files.rlim_cur / 4 / OutputCopy::kDescriptorsEach : 0, 1);
}

constexpr char kEverywhere[] = "0.0.0.0";
constexpr char kEverywhereOfBoth[] = "::";
constexpr std::size_t kCopiedReports = 65'536;

// Of IPv4 alone where the kernel has no IPv6; else one socket hears both.
const char* every_address() {
  const UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int off = 0;
  const bool both = socket.valid() && ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0;
  return both ? kEverywhereOfBoth : kEverywhere;
}

// Answers that wait: of each host as many as it looks at at once, and never fewer than this. One more counts as never
// said, and who asked has its deadline.
constexpr std::size_t kFewestWaiting = 256;

// For an event, which is journalled: the beginning of a stack says where a rank stands.
constexpr std::size_t kStackWordsBytes = 8U << 10U;

}  // namespace

Status Workers::open() {
  MONARCH_ASSIGN(keys_, job_keys(shared_.files.directory));
  MONARCH_ASSIGN(context_, ZmqContext::create({.io_threads = 2}));
  MONARCH_ASSIGN(zap_, ZapHandler::start(*context_));
  MONARCH_TRY(zap_self_test(*context_, [this](AllowTable table) { return zap_->replace(std::move(table)); }));
  publish_keys_now();

  ports_ = known_ports(shared_.files.directory);
  ServerOptions control = port_options(ports_.control);
  control.listener = kept_listener(0, ports_.control);
  control.peer = {.per_second = kMessagesPerSecond,
                  .burst = kMessageBurst,
                  .bytes_per_second = kMessageBytesPerSecond,
                  .bytes_burst = kMessageBytesBurst};
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
  MONARCH_TRY(keep_ports(shared_.files.directory, ports_));
  MONARCH_TRY(open_stacks());
  MONARCH_TRY(open_relay(std::move(*bulk_link)));

  hangs_ = std::make_unique<HangWatch>(
      shared_.core,
      HangWatchHandlers{
          .decide = [this](const CoreEvent& event) { (void)shared_.decide(event); },
          .dump = [this](RankId rank, const std::function<void(std::string)>& then) { dump_stacks(rank, then); }});
  links_ = std::make_unique<WorkerLinks>(*shared_.loop, *control_link_, shared_.core, shared_.term(),
                                         this_process_as_holder(wall_now()).boot_id, links_handlers());
  open_input();
  return {};
}

void Workers::open_input() {
  input_ = std::make_unique<InputDesk>(
      shared_.core,
      InputDeskOptions{
          .send = [this](HostId host, const Input& input) { (void)links_->send(host, input); },
          .at = [this](Instant when, std::function<void()> then) { shared_.loop->at(when, std::move(then)); },
          .now = [this] { return shared_.loop->now(); },
          .on_end =
              [this] {
                shared_.announce(EventKind::kInputEnded, Severity::kWarning,
                                 "nobody gives the ranks their standard input any more: they read its end");
              }});
}

void Workers::attach(ZmqLoop& loop) {
  control_link_->attach(loop, [this](InboundMessage&& message) { links_->on_message(std::move(message)); });
}

BeatBookHandlers Workers::beat_handlers() {
  return {.decide = shared_.decide,
          .is_durable = shared_.is_durable,
          .all_durable = shared_.all_durable,
          .on_health = handlers_.on_health,
          .on_warned = handlers_.on_warned,
          .on_output = handlers_.on_output,
          .on_written = written_handler(),
          .on_commit = commit_handler(),
          .on_report = [this](HostId host, const RankReport& report,
                              Instant sent_at) { hangs_->on_report(host, report, sent_at, shared_.loop->now()); },
          .has_successor = [this] { return has_successor(shared_.files.directory, shared_.term()); },
          .on_superseded =
              [this](Term term) {
                log_error("workers have promised term ", term.value(), ", this is term ", shared_.term().value(),
                          ": another supervisor holds the job");
                shared_.leave(kExitSuperseded);
              }};
}

WorkerLinksHandlers Workers::links_handlers() {
  return {.beats = beat_handlers(),
          .on_pressure = handlers_.on_pressure,
          .on_output_lost = [this](HostId host, std::uint64_t bytes,
                                   const std::string& failure) { on_output_lost(host, bytes, failure); },
          .on_start = [this](HostId host, const Start& start) { return relay_->started(host, start).ok(); },
          .on_vault = vault_handler(),
          .on_post = post_handler(),
          .on_input_taken = [this](HostId host, const InputTaken& taken) { input_->taken(host, taken); },
          .on_greeted = [this](HostId host, const Hello& hello) { handlers_.on_greeted(host, hello.daemon_pid); },
          .on_goodbye = [this](HostId host, const Goodbye& goodbye) { handlers_.on_goodbye(host, goodbye.orderly); }};
}

// Of the supervisor before this one, where the guard has kept it: nobody else can have listened there meanwhile. -1:
// there is none.
int Workers::kept_listener(std::size_t which, std::uint16_t port) const {
  if (which >= shared_.options.kept_fds.size() || port == 0) return -1;
  UniqueFd kept(shared_.options.kept_fds[which]);
  if (!ListenerDoor::listens_at(kept.get(), port) || ::fcntl(kept.get(), F_SETFD, FD_CLOEXEC) != 0) return -1;
  return kept.release();
}

ServerOptions Workers::port_options(std::uint16_t known) const {
  ServerOptions options;
  const bool tunnelled = shared_.spec().launch.facts().tunnels && shared_.spec().control.via == ControlVia::kSsh;
  const bool dialled = shared_.on_machines() && !tunnelled;
  options.link.beat_interval = Duration::zero();  // workers say more by their beats, and the kernel finds dead machines
  options.address = dialled ? every_address() : kLoopbackAddress;
  options.ports = {known, known};  // a supervisor that comes back has those that its workers know
  const auto& wanted = shared_.spec().control.ports;
  if (known == 0 && wanted) options.ports = {wanted->first, wanted->last};
  return options;
}

// Ports that the spec names are its author's to mend, unless somebody else has them for now.
Error Workers::port_error(const Error& error) {
  if (!shared_.spec().control.ports) return error;
  ports_taken_ = error.code == ErrorCode::kBusy;
  return {ports_taken_ ? ErrorCode::kBusy : ErrorCode::kInvalid, text("control.ports: ", error.message)};
}

void Workers::dump_stacks(RankId rank, const std::function<void(std::string)>& then) {
  stacks_->ask({.rank = rank}, [then](const RankStacks& told) { then(stack_words(told, kStackWordsBytes)); });
}

Status Workers::open_stacks() {
  const std::size_t most = std::max(shared_.core.hosts().size() * limits::kStacksAtOnce, kFewestWaiting);
  auto on_stacks = [this](StacksCame came) { stacks_->on_stacks(std::move(came)); };
  MONARCH_ASSIGN(stacks_came_, WatchedInbox<StacksCame>::create(*shared_.loop, most, std::move(on_stacks)));
  stacks_ = std::make_unique<StackDumps>(
      *shared_.loop, shared_.core, [this](HostId host, const TakeStacks& order) { return links_->send(host, order); });
  return {};
}

// Hosts of their own have disks of their own: what ranks write there is copied to the job's folder.
Status Workers::open_relay(std::unique_ptr<ServerLink> bulk_link) {
  OutputRelayOptions options{.job = shared_.job,
                             .meshes = shared_.spec().meshes.size(),
                             .started = started_before(shared_.core),
                             .stacks = &stacks_came_->inbox()};
  if (shared_.on_machines()) {
    options.copy = OutputCopyOptions{.log_directory = shared_.files.log_directory(),
                                     .mesh_names = log_mesh_names(shared_.spec()),
                                     .max_bytes = shared_.spec().logs.max_bytes,
                                     .most_open = most_copies_open()};
    auto on_copied = [this](const Incarnation& copied) { links_->on_copied(copied); };
    MONARCH_ASSIGN(copied_, WatchedInbox<Incarnation>::create(*shared_.loop, kCopiedReports, std::move(on_copied)));
    options.copied = &copied_->inbox();
  }
  MONARCH_ASSIGN(relay_, OutputRelay::start(std::move(bulk_link), std::move(options)));
  return {};
}

// Empty where no copy is kept.
std::function<void(const RankReport&)> Workers::written_handler() {
  if (!copied_) return nullptr;
  return [this](const RankReport& report) {
    // If too much waits already, the next beat says it again.
    (void)relay_->written({.process = report.process,
                           .stdout_bytes = report.stdout_bytes,
                           .stderr_bytes = report.stderr_bytes,
                           .error_bytes = report.error_bytes,
                           .complete = report.output_complete});
  };
}

std::function<void(HostId, const RankReport&)> Workers::commit_handler() {
  commits_ = std::make_unique<CommitDesk>(
      shared_.core,
      CommitDeskHandlers{
          .decide = [this](const CoreEvent& event) { return shared_.decide(event); },
          .is_durable = [this](std::uint64_t ticket) { return shared_.is_durable(ticket); },
          .answer = [this](HostId host, const CommitAnswer& answer) { (void)links_->send(host, answer); }});
  return [this](HostId host, const RankReport& report) { commits_->hear(host, report, shared_.loop->now()); };
}

// Empty where no checkpoints are kept in memory.
std::function<void(HostId, const VaultReport&)> Workers::vault_handler() {
  if (shared_.spec().checkpoints.peer == 0) return nullptr;
  VaultDeskOptions options{.send = [this](HostId host, const VaultTable& table) { return links_->send(host, table); },
                           .is_durable = [this](std::uint64_t ticket) { return shared_.is_durable(ticket); }};
  if (shared_.returned) options.returned = shared_.loop->now();
  vaults_ = std::make_unique<VaultDesk>(shared_.core, std::move(options));
  return [this](HostId host, const VaultReport& report) { vaults_->hear(host, report, shared_.loop->now()); };
}

// Empty where nobody calls.
std::function<void(HostId, const PostReport&, Instant sent_at)> Workers::post_handler() {
  if (!shared_.spec().calls) return nullptr;
  RosterDeskOptions options{
      .send = [this](HostId host, const Roster& roster) { return links_->send(host, roster); },
      .when_durable = [this](std::function<void()> then) { shared_.when_durable(std::move(then)); },
      .at = [this](Instant when, std::function<void()> then) { shared_.loop->at(when, std::move(then)); },
      .now = [this] { return shared_.loop->now(); },
      .tell_people =
          [this](HostId host, const PostWord& word) {
            (void)shared_.decide(PeopleTold{.event = post_word_event(shared_.name_of(host), word)});
          },
      .post_ended = [this](HostId host, const std::string& how) { on_post_ended(host, how); },
      .told = [this](HostId host) { claims_->told(host); },
      .returned = {}};
  if (shared_.returned) options.returned = shared_.loop->now();
  roster_ = std::make_unique<RosterDesk>(shared_.core, std::move(options));
  make_claim_desk();
  return [this](HostId host, const PostReport& report, Instant sent_at) {
    roster_->hear(host, report);
    claims_->hear(host, report, sent_at);
  };
}

void Workers::make_claim_desk() {
  ClaimDeskOptions options{
      .decide = [this](const CoreEvent& event) { (void)shared_.decide(event); },
      .when_durable = [this](std::function<void()> then) { shared_.when_durable(std::move(then)); },
      .at = [this](Instant when, std::function<void()> then) { shared_.loop->at(when, std::move(then)); },
      .now = [this] { return shared_.loop->now(); },
      .send = [this](HostId host, const ClaimAnswer& answer) { (void)links_->send(host, answer); },
      .roster_of = [this](HostId host) { return roster_->told_to(host); }};
  claims_ = std::make_unique<ClaimDesk>(shared_.core, std::move(options));
}

void Workers::on_post_ended(HostId host, const std::string& how) {
  ++posts_ended_;
  (void)shared_.decide(PeopleTold{.event = post_ended_event(shared_.name_of(host), how)});
}

Status Workers::when_served(std::uint64_t viewer, std::function<void()> then) {
  if (!roster_) return Error{ErrorCode::kUnsupported, "the hosts of this job have no posts"};
  roster_->when_served(viewer, std::move(then));
  return {};
}

void Workers::viewer_left(std::uint64_t viewer) {
  input_->left(viewer);
  if (roster_) roster_->forget(viewer);
}

void Workers::publish_keys() {
  if (std::exchange(keys_are_due_, true)) return;
  shared_.loop->defer([this] { publish_keys_now(); });
}

void Workers::publish_keys_now() {
  keys_are_due_ = false;
  AllowTable table;
  const auto& hosts = shared_.core.state().hosts;
  for (std::uint32_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i].public_key.empty() || hosts[i].phase == HostPhase::kEnded) continue;
    const auto key = CurvePublicKey::parse(hosts[i].public_key);
    if (key.ok()) table.users[*key] = user_id_of(HostId(i));
  }
  const Status replaced = zap_->replace(std::move(table));
  if (!replaced.ok()) log_error("the table of keys: ", replaced.error().message);
}

void Workers::changed(std::uint64_t ticket) {
  if (vaults_) vaults_->changed(ticket);
  if (roster_) roster_->changed();
  if (claims_) claims_->changed();
}

void Workers::told(const JobEvent& event) {
  if (roster_) roster_->told(event);
}

void Workers::on_output_lost(HostId host, std::uint64_t bytes, const std::string& failure) {
  const auto tell = [this](bool begins, std::string message) {
    shared_.announce(begins ? EventKind::kOutputLost : EventKind::kOutputKept,
                     begins ? Severity::kWarning : Severity::kInfo, std::move(message));
  };
  if (auto note = losses_.note(host, shared_.name_of(host), bytes, failure, shared_.loop->now())) {
    tell(note->begins, std::move(note->message));
  }
  for (const HostId refused : relay_->newly_refused()) {
    shared_.announce(
        EventKind::kOutputRefused, Severity::kWarning,
        text(shared_.core.hosts()[refused.value()].name,
             ": it sends output of what was not started there; that is dropped and counted, as output.forged_pieces"));
  }
  std::string copy = relay_->copy_failure();
  if (copy.empty() == std::exchange(copy_failure_, copy).empty()) return;
  tell(!copy.empty(), copy.empty()
                          ? "what ranks write on their hosts is copied here again"
                          : text("what ranks write on their hosts is shown and not copied here: ", printable(copy)));
}

void Workers::complete(Verdict& verdict) const {
  verdict.lost_output = losses_.account();
  FirstCause& cause = verdict.cause;
  UnkeptTail unkept;
  std::uint64_t written = 0;
  for (std::uint32_t m = 0; m < shared_.spec().meshes.size() && cause.rank; ++m) {
    if (shared_.spec().meshes[m].name != cause.mesh) continue;
    unkept = relay_->unkept_tail({MeshId(m), Rank(*cause.rank)}, cause.generation);
    written = shared_.core.facts()
                  .rank({MeshId(m), Rank(*cause.rank)})
                  .stderr_bytes;  // of the last generation, as the cause is
  }
  add_last_words(shared_.files.log_directory(), unkept, written, cause);
}

void Workers::add_to(JobStatus& status) const {
  links_->add_progress(status);
  for (std::uint32_t m = 0; m < status.meshes.size(); ++m) {
    for (RankStatus& rank : status.meshes[m].ranks)
      rank.watched = !is_left_alone(shared_.core.facts(), {MeshId(m), Rank(rank.rank)});
  }
  for (std::size_t i = 0; i < status.hosts.size(); ++i) {
    const HostId host(static_cast<std::uint32_t>(i));
    HostStatus& shown = status.hosts[i];
    if (links_->liveness().health(host) == HostHealth::kSuspect) {
      shown.phase = "suspect";
      if (const auto& hold = links_->liveness().hold()) {
        shown.held_milliseconds = std::max(hold->until - shared_.loop->now(), Duration::zero()).count_milliseconds();
      }
    }
    shown.daemon_starts = links_->daemon_starts(host);
    if (roster_ && roster_->serves(host)) shown.door = links_->door(host);
    if (is_joined(shared_.core.facts().host(host).phase)) shown.pressure = links_->pressure(host);
    if (shown.pressure) shown.shortage = shortage_of(*shown.pressure);
    if (const std::string failure = losses_.failure(host); !failure.empty()) {
      shown.shortage += text(shown.shortage.empty() ? "" : ", ", "output is in no file: ", printable(failure));
    }
    const Duration silence = links_->liveness().silence(host, shared_.loop->now());
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
  add("posts.ended", posts_ended_);
  add("supervisor.local_health", links_->liveness().local_health());
  add("bulk.foreign_job", relay_->foreign_job());
  add("commits.refused", commits_->refused());
  add("output.dropped_pieces", relay_->dropped_pieces());
  add("output.forged_pieces", relay_->forged_pieces());
}

}  // namespace monarch
