// How a supervisor reaches its hosts: which launcher, where workers call back, what each of them is told.

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "supervisor/journal/runtime_dir.h"
#include "supervisor/launch/local/local_launcher.h"
#include "supervisor/launch/open_launcher.h"
#include "supervisor/loop/supervisor_loop.h"
#include "transport/base/log.h"
#include "transport/base/loopback.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

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

// Hosts are machines of their own, with disks of their own, which reach this one over a network.
bool on_machines(const JobSpec& spec) { return !spec.launch.facts().one_machine; }

}  // namespace

ServerOptions Supervisor::port_options(std::uint16_t known) const {
  ServerOptions options;
  const bool tunnelled = core_.spec().launch.facts().tunnels && core_.spec().control.via == ControlVia::kSsh;
  const bool dialled = on_machines(core_.spec()) && !tunnelled;
  options.address = dialled ? every_address() : kLoopbackAddress;
  options.ports = {known, known};  // a supervisor that comes back has those that its workers know
  const auto& wanted = core_.spec().control.ports;
  if (known == 0 && wanted) options.ports = {wanted->first, wanted->last};
  return options;
}

// A convenience: the job does not wait for it, and does not fail for it.
std::optional<ViewerDoorAddress> Supervisor::open_viewer_port(const std::string& socket) {
  if (!core_.spec().launch.facts().is_visited) return std::nullopt;
  const ServerOptions ports = port_options(0);
  auto port = ViewerPort::start({.address = ports.address, .ports = ports.ports, .socket = socket});
  if (!port.ok()) {
    log_warn("viewers on other machines cannot come: ", port.error().message);
    return std::nullopt;
  }
  viewer_port_ = std::move(*port);
  doors_.push_back(viewer_port_->take_door());
  return viewer_port_->take_address();
}

// Ports that the spec names are its author's to mend, unless somebody else has them for now.
Error Supervisor::port_error(const Error& error) {
  if (!core_.spec().control.ports) return error;
  ports_taken_ = error.code == ErrorCode::kBusy;
  return {ports_taken_ ? ErrorCode::kBusy : ErrorCode::kInvalid, text("control.ports: ", error.message)};
}

// Hosts of their own have disks of their own: what ranks write there is copied to the job's folder.
Status Supervisor::open_relay(std::unique_ptr<ServerLink> bulk_link) {
  OutputRelayOptions options{.job = job_,
                             .meshes = core_.spec().meshes.size(),
                             .started = started_before(core_),
                             .stacks = &stacks_came_->inbox()};
  if (on_machines(core_.spec())) {
    options.copy = OutputCopyOptions{.log_directory = files_.log_directory(),
                                     .mesh_names = log_mesh_names(core_.spec()),
                                     .max_bytes = core_.spec().logs.max_bytes,
                                     .most_open = most_copies_open()};
    auto on_copied = [this](const Incarnation& copied) { links_->on_copied(copied); };
    MONARCH_ASSIGN(copied_, WatchedInbox<Incarnation>::create(*loop_, kCopiedReports, std::move(on_copied)));
    options.copied = &copied_->inbox();
  }
  MONARCH_ASSIGN(relay_, OutputRelay::start(std::move(bulk_link), std::move(options)));
  return {};
}

// Empty where no copy is kept.
std::function<void(const RankReport&)> Supervisor::written_handler() {
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

// Empty where no checkpoints are kept in memory.
std::function<void(HostId, const VaultReport&)> Supervisor::vault_handler() {
  if (core_.spec().checkpoints.peer == 0) return nullptr;
  VaultDeskOptions options{.send = [this](HostId host, const VaultTable& table) { return links_->send(host, table); },
                           .is_durable = [this](std::uint64_t ticket) { return decider_->durable_ticket() >= ticket; }};
  if (returned_) options.returned = loop_->now();
  vaults_ = std::make_unique<VaultDesk>(core_, std::move(options));
  return [this](HostId host, const VaultReport& report) { vaults_->hear(host, report, loop_->now()); };
}

LauncherHandlers Supervisor::launcher_handlers() {
  const auto say = [this](EventKind kind, Severity severity, std::string message) {
    announce(kind, severity, std::move(message));
  };
  return {
      .on_launched =
          [this](HostId host, LaunchedWorker worker) {
            (void)decide(WorkerLaunched{.host = host, .worker = std::move(worker)});
            publish_keys();
          },
      .on_failed =
          [this](HostId host, LaunchFailure failure) {
            (void)decide(WorkerLaunchFailed{.host = host, .failure = bounded(std::move(failure))});
          },
      .on_ended =
          [this](HostId host, std::string how, bool orderly) {
            links_->stop_expecting(host);
            (void)decide(WorkerEnded{.host = host, .how = std::move(how), .orderly = orderly});
          },
      .say = say,
      .on_sending = [say](std::string words) { say(EventKind::kWorkspaceSending, Severity::kInfo, std::move(words)); },
      .on_seen = [this](HostId host, const SecondPath& seen) { on_seen(host, seen); },
      .on_named =
          [this](HostId host, const std::string& machine, std::string how) {
            (void)decide(HostNamed{.host = host, .name = machine, .how = std::move(how)});
            return core_.hosts()[host.value()].name;
          },
      .on_node_seen = [this](HostId host, const SeenNode& seen) { on_node_seen(host, seen); },
      .on_foreseen = [this](const EndForeseen& event) { on_end_foreseen(event); },
      .on_over = [this](StopRequest request) { (void)decide(StopOrdered{.request = std::move(request)}); }};
}

Status Supervisor::open_launcher() {
  const LaunchSurroundings around{
      .loop = *loop_,
      .guard = *guard_,
      .spec = core_.spec(),
      .hosts = core_.hosts(),
      .directory = files_.directory,
      .runtime = *runtime_,
      .job = job_,
      .job_id = files_.job_id,
      .term = files_.journal.term,
      .worker_path = options_.worker_path,
      .log_directory = files_.log_directory(),
      .control_port = ports_.control,
      .bulk_port = ports_.bulk,
      .seed = static_cast<std::uint64_t>(::getpid()) ^ static_cast<std::uint64_t>(started_.nanoseconds_since_epoch),
      .accept_new_host_keys = options_.accept_new_host_keys,
      .returned = returned_};
  MONARCH_ASSIGN(launcher_, monarch::open_launcher(around, launcher_handlers()));
  return {};
}

void Supervisor::on_health(HostId host, HostHealth health, Duration silence) {
  if (health != HostHealth::kSuspect) launcher_->stop_doubting(host);
  if (health == HostHealth::kSilent) return;  // the core is told of it by itself
  (void)decide(HostDoubted{.host = host, .heard_again = health == HostHealth::kFresh, .silence = silence});
  if (health != HostHealth::kSuspect) return;
  // Two that are heard, the next ones after it: other hosts are asked of another one.
  constexpr std::size_t kPeers = 2;
  std::vector<LookPeer> peers;
  const std::size_t hosts = core_.hosts().size();
  for (std::size_t i = 1; i < hosts && peers.size() < kPeers; ++i) {
    const HostId peer(static_cast<std::uint32_t>((host.value() + i) % hosts));
    const bool heard = links_->liveness().health(peer) == HostHealth::kFresh;
    const std::string& address = core_.hosts()[host.value()].address;
    if (heard && !address.empty()) peers.push_back({.host = peer, .suspect_address = address});
  }
  launcher_->doubt(host, peers);
}

// That its worker is gone is the launcher's to prove, and to tell.
void Supervisor::on_seen(HostId host, const SecondPath& seen) {
  if (core_.state().hosts[host.value()].phase != HostPhase::kJoined) return;
  (void)decide(PeopleTold{.event = told_of(core_.hosts()[host.value()].name, seen)});
  if (worker_is_gone(seen)) launcher_->destroy(host);
}

// Virtual hosts share a machine that its user sees for himself.
void Supervisor::on_pressure(HostId host, const HostPressure& pressure) {
  if (!on_machines(core_.spec())) return;
  if (auto event = pressures_.note(host, core_.hosts()[host.value()].name, pressure, loop_->now())) {
    (void)decide(PeopleTold{.event = std::move(*event)});
  }
}

void Supervisor::on_output_lost(HostId host, std::uint64_t bytes, const std::string& failure) {
  const auto tell = [this](bool begins, std::string message) {
    announce(begins ? EventKind::kOutputLost : EventKind::kOutputKept, begins ? Severity::kWarning : Severity::kInfo,
             std::move(message));
  };
  if (auto note = losses_.note(host, core_.hosts()[host.value()].name, bytes, failure)) {
    tell(note->begins, std::move(note->message));
  }
  for (const HostId refused : relay_->newly_refused()) {
    announce(
        EventKind::kOutputRefused, Severity::kWarning,
        text(core_.hosts()[refused.value()].name,
             ": it sends output of what was not started there; that is dropped and counted, as output.forged_pieces"));
  }
  std::string copy = relay_->copy_failure();
  if (copy.empty() == std::exchange(copy_failure_, copy).empty()) return;
  tell(!copy.empty(), copy.empty()
                          ? "what ranks write on their hosts is copied here again"
                          : text("what ranks write on their hosts is shown and not copied here: ", printable(copy)));
}

// Who launched the hosts may go once all that were wanted are there or out for good, and the job runs.
void Supervisor::release_launcher() {
  if (core_.state().phase != JobPhase::kRunning || !launcher_->has_idle_helper()) return;
  for (const HostState& host : core_.state().hosts) {
    if (host.phase == HostPhase::kLaunching || host.phase == HostPhase::kLaunched) return;
  }
  launcher_->release_helper("the job runs");
}

void Supervisor::launch(HostId host) {
  const PoolHost& where = core_.hosts()[host.value()];
  const Supervision& supervision = core_.spec().supervision;
  Bootstrap bootstrap{.job_id = files_.job_id,
                      .host = host.value(),
                      .host_name = where.name,
                      .term = files_.journal.term,
                      .server_public_key = keys_->public_key.to_text(),
                      .control_endpoint = text("tcp://", kLoopbackAddress, ":", ports_.control),
                      .bulk_endpoint = text("tcp://", kLoopbackAddress, ":", ports_.bulk),
                      .heartbeat = supervision.heartbeat,
                      .suspect_after = supervision.suspect_after,
                      .orphan_ttl = supervision.orphan_ttl};
  const CheckpointSpec& checkpoints = core_.spec().checkpoints;
  if (checkpoints.peer > 0) bootstrap.checkpoint_memory = checkpoints.memory;
  const PortSpan ports = vault_ports(core_.spec());
  bootstrap.first_port = ports.first;
  bootstrap.last_port = ports.last;
  if (on_machines(core_.spec())) {
    // Where it keeps its things and who it is, a machine of its own knows by itself.
    bootstrap.copied = true;
    bootstrap.login_environment = true;
    bootstrap.term_foretells = core_.spec().launch.facts().foretells;
    bootstrap.interface = core_.spec().network.interface;
  } else {
    bootstrap.state_directory = text(files_.root, "/hosts/", files_.job_id, "/", where.name);
    bootstrap.log_directory = files_.log_directory();
    bootstrap.host_address = where.address;
    bootstrap.socket_directory = local_socket_directory(runtime_->path(), job_, host);
  }
  if (core_.state().hosts[host.value()].losses > 0) launcher_->check_first(host);
  launcher_->launch(host, bootstrap);
}

}  // namespace monarch
