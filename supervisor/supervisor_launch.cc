// How a supervisor reaches its hosts: which launcher, where workers call back, what each of them is told.

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "supervisor/host_health.h"
#include "supervisor/journal/runtime_dir.h"
#include "supervisor/launch/ssh/libssh.h"
#include "supervisor/launch/ssh/ssh_routes.h"
#include "supervisor/launch/ssh/worker_image.h"
#include "supervisor/supervisor_loop.h"
#include "supervisor/workspace/scan.h"
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
// How long who launches the hosts may take to connect: it has started us, and is told at once that we are ready.
constexpr Duration kLauncherAwaited = Duration::seconds(30);

// Of IPv4 alone where the kernel has no IPv6; else one socket hears both.
const char* every_address() {
  const UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int off = 0;
  const bool both = socket.valid() && ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0;
  return both ? kEverywhereOfBoth : kEverywhere;
}

const LaunchSsh* ssh_of(const JobSpec& spec) { return std::get_if<LaunchSsh>(&spec.launch); }

// Hosts are machines of their own, with disks of their own, which reach this one over a network.
bool on_machines(const JobSpec& spec) { return !std::holds_alternative<LaunchLocal>(spec.launch); }

}  // namespace

ServerOptions Supervisor::port_options(std::uint16_t known) const {
  ServerOptions options;
  const bool tunnelled = ssh_of(core_.spec()) != nullptr && core_.spec().control.via == ControlVia::kSsh;
  const bool dialled = on_machines(core_.spec()) && !tunnelled;
  options.address = dialled ? every_address() : kLoopbackAddress;
  options.ports = {known, known};  // a supervisor that comes back has those that its workers know
  const auto& wanted = core_.spec().control.ports;
  if (known == 0 && wanted) options.ports = {wanted->first, wanted->last};
  return options;
}

// A convenience: the job does not wait for it, and does not fail for it.
std::optional<ViewerDoorAddress> Supervisor::open_viewer_port(const std::string& socket) {
  if (!std::holds_alternative<LaunchSlurm>(core_.spec().launch)) return std::nullopt;
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
                             .stacks = stacks_came_.get()};
  if (on_machines(core_.spec())) {
    options.copy = OutputCopyOptions{.log_directory = files_.log_directory(),
                                     .mesh_names = log_mesh_names(core_.spec()),
                                     .max_bytes = core_.spec().logs.max_bytes,
                                     .most_open = most_copies_open()};
    MONARCH_ASSIGN(copied_, Inbox<Incarnation>::create(kCopiedReports));
    options.copied = copied_.get();
    const auto watched = loop_->watch(copied_->descriptor(), Interest::kRead, [this](Readiness) {
      for (const Incarnation& done : copied_->take_all()) links_->on_copied(done);
    });
    if (!watched.ok()) return watched.error();
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
  return {.on_launched =
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
                if (second_look_) second_look_->forget(host);
                (void)decide(WorkerEnded{.host = host, .how = std::move(how), .orderly = orderly});
              },
          .on_sending =
              [this](std::string words) { announce(EventKind::kWorkspaceSending, Severity::kInfo, std::move(words)); }};
}

Status Supervisor::open_launcher() {
  if (core_.spec().supervised_elsewhere()) {
    open_relayed_launcher();
    return {};
  }
  if (ssh_of(core_.spec()) != nullptr) return open_ssh_launcher(*ssh_of(core_.spec()));
  if (const auto* slurm = std::get_if<LaunchSlurm>(&core_.spec().launch)) return open_slurm_nodes(*slurm);
  // The longest name in it must be an address, too.
  const std::string sockets = local_socket_directory(runtime_->path(), job_, HostId(limits::kHostsPerJob));
  MONARCH_TRY(socket_path(*runtime_, text(sockets.substr(runtime_->path().size() + 1), "/999.65535.n")));
  std::vector<std::string> host_names;
  for (const PoolHost& host : core_.hosts()) host_names.push_back(host.name);
  auto local = std::make_unique<LocalLauncher>(*loop_, *guard_,
                                               LocalLauncherOptions{.job = job_,
                                                                    .term = files_.journal.term,
                                                                    .worker_path = options_.worker_path,
                                                                    .log_directory = files_.log_directory(),
                                                                    .runtime_directory = runtime_->path(),
                                                                    .host_names = std::move(host_names)},
                                               launcher_handlers());
  local_launcher_ = local.get();
  launcher_ = std::move(local);
  return {};
}

Status Supervisor::open_ssh_launcher(const LaunchSsh& ssh) {
  MONARCH_TRY(load_libssh());
  if (const std::string concern = libssh_concern(libssh_version()); !concern.empty()) {
    // Viewers can be told when this is done.
    loop_->defer([this, concern] { announce(EventKind::kLibraryOld, Severity::kWarning, concern); });
  }
  SshLauncherOptions options{.job = job_,
                             .job_id = files_.job_id,
                             .term = files_.journal.term,
                             .way_back = {.address = core_.spec().control.address},
                             .installed = ssh.worker.value_or("")};
  SshUser user = SshUser::of_this_process();
  user.accept_new_host_keys = options_.accept_new_host_keys;
  MONARCH_ASSIGN(options.hosts, ssh_routes(ssh, user));
  if (!ssh.worker) {
    MONARCH_ASSIGN(options.image, read_worker_image(options_.worker_path));
  }
  if (core_.spec().control.via == ControlVia::kSsh) {
    options.way_back.tunnel = {ports_.control, ports_.bulk};
    // What ends without a word is to be known, and mended, before a host counts as lost.
    const Duration lost = core_.spec().supervision.lost_after;
    options.way_back.silence = {.ask_after = lost / 5, .dead_after = lost * 3 / 5};
  }
  options.pool.parallel = ssh.parallel;
  options.pool.seed =
      static_cast<std::uint64_t>(::getpid()) ^ static_cast<std::uint64_t>(started_.nanoseconds_since_epoch);
  options.workspace = core_.spec().workspace.has_value();
  MONARCH_TRY(open_second_look(options));
  options.check = host_health(core_.spec(), options);
  MONARCH_ASSIGN(auto launcher, SshLauncher::create(*loop_, std::move(options), launcher_handlers()));
  ssh_launcher_ = launcher.get();
  launcher_ = std::move(launcher);
  return core_.spec().workspace ? pack_workspace() : Status();
}

// What it finds is to be known before the host counts as lost.
Status Supervisor::open_second_look(const SshLauncherOptions& launcher) {
  const Supervision& supervision = core_.spec().supervision;
  const bool dialled = core_.spec().control.via == ControlVia::kDirect;
  SecondLookOptions options{.job = job_,
                            .hosts = launcher.hosts,
                            .image = launcher.image,
                            .installed = launcher.installed,
                            .address = core_.spec().control.address,
                            .port = dialled ? ports_.control : std::uint16_t{0},
                            .patience = (supervision.lost_after - supervision.suspect_after) * 4 / 5,
                            .seed = launcher.pool.seed};
  MONARCH_ASSIGN(second_look_,
                 SecondLook::create(*loop_, std::move(options),
                                    [this](HostId host, const SecondPath& seen) { on_seen(host, seen); }));
  return {};
}

void Supervisor::on_health(HostId host, HostHealth health, Duration silence) {
  if (second_look_ && health != HostHealth::kSuspect) second_look_->forget(host);
  if (health == HostHealth::kSilent) return;  // the core is told of it by itself
  (void)decide(HostDoubted{.host = host, .heard_again = health == HostHealth::kFresh, .silence = silence});
  if (!second_look_ || health != HostHealth::kSuspect) return;
  // Two that are heard, the next ones after it: other hosts are asked of another one.
  constexpr std::size_t kPeers = 2;
  std::vector<SecondLook::Peer> peers;
  const std::size_t hosts = core_.hosts().size();
  for (std::size_t i = 1; i < hosts && peers.size() < kPeers; ++i) {
    const HostId peer(static_cast<std::uint32_t>((host.value() + i) % hosts));
    const bool heard = links_->liveness().health(peer) == HostHealth::kFresh;
    const std::string& address = core_.hosts()[host.value()].address;
    if (heard && !address.empty()) peers.push_back({.host = peer, .suspect_address = address});
  }
  second_look_->look(host, peers);
}

// That its worker is gone is the launcher's to prove, and to tell.
void Supervisor::on_seen(HostId host, const SecondPath& seen) {
  if (core_.state().hosts[host.value()].phase != HostPhase::kJoined) return;
  (void)decide(PeopleTold{.event = told_of(core_.hosts()[host.value()].name, seen)});
  if (worker_is_gone(seen)) ssh_launcher_->destroy(host);
}

// Virtual hosts share a machine that its user sees for himself.
void Supervisor::on_pressure(HostId host, const HostPressure& pressure) {
  if (local_launcher_ != nullptr) return;
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

// The keys, and the files that the spec names for SSH, are on the machine that started the job.
void Supervisor::open_relayed_launcher() {
  auto launcher = std::make_unique<RelayedLauncher>(
      *loop_,
      RelayedLauncherOptions{
          .job = job_,
          .term = files_.journal.term,
          .hosts = core_.hosts().size(),
          .awaited = returned_ ? Duration::zero() : kLauncherAwaited,
          .on_out_of_reach =
              [this](HostId host) {
                announce(EventKind::kHostOutOfReach, Severity::kWarning,
                         text(core_.hosts()[host.value()].name,
                              ": its worker cannot be ended from here, now that the machine that launched it has gone; "
                              "without us it ends by itself within ",
                              to_text(core_.spec().supervision.lease + core_.spec().supervision.orphan_ttl)));
              }},
      launcher_handlers());
  relayed_launcher_ = launcher.get();
  launcher_ = std::move(launcher);
}

// Who launched the hosts may go once all that were wanted are there or out for good, and the job runs.
void Supervisor::release_launcher() {
  if (relayed_launcher_ == nullptr || core_.state().phase != JobPhase::kRunning || !relayed_launcher_->idle()) return;
  for (const HostState& host : core_.state().hosts) {
    if (host.phase == HostPhase::kLaunching || host.phase == HostPhase::kLaunched) return;
  }
  relayed_launcher_->release("the job runs");
}

Status Supervisor::pack_workspace() {
  MONARCH_ASSIGN(UniqueFd folder, files_.directory.duplicate());
  const auto on_made = [this](MadePack pack) {
    if (pack.ok()) {
      log_info("workspace: ", (*pack)->files(), " files, ", amount_text((*pack)->bytes()));
      for (const std::string& left_out : (*pack)->left_out()) log_warn("workspace: left out: ", left_out);
    }
    ssh_launcher_->on_workspace(std::move(pack));
  };
  MONARCH_ASSIGN(packer_, PackThread::start(*loop_, std::move(folder), *core_.spec().workspace, on_made));
  return {};
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
  if (local_launcher_ == nullptr) {
    // Where it keeps its things and who it is, a machine of its own knows by itself.
    bootstrap.copied = true;
    bootstrap.login_environment = true;
    bootstrap.term_foretells = slurm_nodes_ != nullptr;
    bootstrap.interface = core_.spec().network.interface;
  } else {
    bootstrap.state_directory = text(files_.root, "/hosts/", files_.job_id, "/", where.name);
    bootstrap.log_directory = files_.log_directory();
    bootstrap.host_address = where.address;
    bootstrap.socket_directory = local_socket_directory(runtime_->path(), job_, host);
  }
  if (ssh_launcher_ != nullptr && core_.state().hosts[host.value()].losses > 0) ssh_launcher_->check_first(host);
  launcher_->launch(host, bootstrap);
}

}  // namespace monarch
