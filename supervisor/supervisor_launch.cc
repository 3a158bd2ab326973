// How a supervisor reaches its hosts: which launcher, where workers call back, what each of them is told.

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "supervisor/journal/runtime_dir.h"
#include "supervisor/launch/ssh/libssh.h"
#include "supervisor/launch/ssh/ssh_routes.h"
#include "supervisor/supervisor_loop.h"
#include "transport/base/log.h"
#include "transport/base/sha256.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr char kLoopback[] = "127.0.0.1";
constexpr char kEverywhere[] = "0.0.0.0";
constexpr std::size_t kWorkerBytes = 256U << 20U;  // a larger file is no worker
constexpr std::size_t kCopiedReports = 65'536;

const LaunchSsh* ssh_of(const JobSpec& spec) { return std::get_if<LaunchSsh>(&spec.launch); }

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

SshUser user_of_this_process() {
  SshUser user{.home = variable("HOME"), .agent_socket = variable("SSH_AUTH_SOCK")};
  const passwd* entry = ::getpwuid(::geteuid());
  if (entry == nullptr) return user;
  user.name = entry->pw_name;
  if (user.home.empty()) user.home = entry->pw_dir;
  return user;
}

Result<std::shared_ptr<const WorkerImage>> worker_image(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) return errno_error(text("reading ", path), errno);
  auto image = std::make_shared<WorkerImage>();
  image->bytes.resize(static_cast<std::size_t>(status.st_size));
  if (image->bytes.empty() || image->bytes.size() > kWorkerBytes) {
    return Error{ErrorCode::kInvalid, text(path, " is no monarch-worker: it has ", image->bytes.size(), " bytes")};
  }
  for (std::size_t done = 0; done < image->bytes.size();) {
    const ssize_t got = ::read(file.get(), image->bytes.data() + done, image->bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(text("reading ", path), errno);
    if (got == 0) return Error{ErrorCode::kGone, text(path, " became shorter while it was read")};
    done += static_cast<std::size_t>(got);
  }
  image->file = {.sha256 = sha256(image->bytes), .size = image->bytes.size()};
  utsname machine{};
  if (::uname(&machine) != 0) return errno_error("uname", errno);
  image->machine = machine.machine;
  return std::shared_ptr<const WorkerImage>(std::move(image));
}

}  // namespace

ServerOptions Supervisor::port_options(std::uint16_t known) const {
  ServerOptions options;
  options.address = ssh_of(core_.spec()) == nullptr ? kLoopback : kEverywhere;
  options.ports = {known, known};  // a supervisor that comes back has those that its workers know
  const auto& wanted = core_.spec().control.ports;
  if (known == 0 && wanted) options.ports = {wanted->first, wanted->last};
  return options;
}

// Hosts of their own have disks of their own: what ranks write there is copied to the job's folder.
Status Supervisor::open_relay(std::unique_ptr<ServerLink> bulk_link) {
  OutputRelayOptions options{.job = job_, .spec = core_.spec()};
  if (ssh_of(core_.spec()) != nullptr) {
    OutputCopyOptions copy{.log_directory = files_.log_directory(), .max_bytes = core_.spec().logs.max_bytes};
    for (const MeshSpec& mesh : core_.spec().meshes) copy.mesh_names.push_back(mesh.name);
    options.copy = std::move(copy);
    MONARCH_ASSIGN(copied_, Inbox<OutputCopied>::create(kCopiedReports));
    options.copied = copied_.get();
    const auto watched = loop_->watch(copied_->descriptor(), Interest::kRead, [this](Readiness) {
      for (const OutputCopied& done : copied_->take_all()) links_->on_copied(done.rank, done.generation);
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
    (void)relay_->written({.rank = report.rank,
                           .generation = report.generation,
                           .stdout_bytes = report.stdout_bytes,
                           .stderr_bytes = report.stderr_bytes,
                           .error_bytes = report.error_bytes,
                           .complete = report.output_complete});
  };
}

LauncherHandlers Supervisor::launcher_handlers() {
  return {.on_launched =
              [this](HostId host, LaunchedWorker worker) {
                (void)decide(WorkerLaunched{.host = host,
                                            .reply = std::move(worker.reply),
                                            .control_endpoint = std::move(worker.control_endpoint),
                                            .again = std::move(worker.again)});
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
          .on_inventory = [this] { return_to_job(); }};
}

Status Supervisor::open_launcher() {
  if (ssh_of(core_.spec()) != nullptr) return open_ssh_launcher(*ssh_of(core_.spec()));
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
  if (const std::string concern = libssh_concern(libssh_version()); !concern.empty()) log_warn(concern);
  SshLauncherOptions options{.job = job_,
                             .job_id = files_.job_id,
                             .term = files_.journal.term,
                             .control_address = core_.spec().control.address,
                             .installed = ssh.worker.value_or("")};
  SshUser user = user_of_this_process();
  user.accept_new_host_keys = options_.accept_new_host_keys;
  MONARCH_ASSIGN(options.hosts, ssh_routes(ssh, user));
  if (!ssh.worker) {
    MONARCH_ASSIGN(options.image, worker_image(options_.worker_path));
  }
  options.pool.parallel = ssh.parallel;
  options.pool.seed =
      static_cast<std::uint64_t>(::getpid()) ^ static_cast<std::uint64_t>(started_.nanoseconds_since_epoch);
  MONARCH_ASSIGN(auto launcher, SshLauncher::create(*loop_, std::move(options), launcher_handlers()));
  ssh_launcher_ = launcher.get();
  launcher_ = std::move(launcher);
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
                      .control_endpoint = text("tcp://", kLoopback, ":", ports_.control),
                      .bulk_endpoint = text("tcp://", kLoopback, ":", ports_.bulk),
                      .heartbeat = supervision.heartbeat,
                      .suspect_after = supervision.suspect_after,
                      .orphan_ttl = supervision.orphan_ttl};
  if (ssh_launcher_ != nullptr) {
    // Where it keeps its things and who it is, a machine of its own knows by itself.
    bootstrap.copied = true;
    bootstrap.login_environment = true;
  } else {
    bootstrap.state_directory = text(files_.root, "/hosts/", files_.job_id, "/", where.name);
    bootstrap.log_directory = files_.log_directory();
    bootstrap.host_address = where.address;
    bootstrap.socket_directory = local_socket_directory(runtime_->path(), job_, host);
  }
  launcher_->launch(host, bootstrap);
}

}  // namespace monarch
