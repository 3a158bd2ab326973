#include "worker/keeper/keeper_main.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/files/directories.h"
#include "transport/base/limits.h"
#include "transport/base/log.h"
#include "transport/base/marks.h"
#include "transport/base/text.h"
#include "transport/messages/bootstrap.h"
#include "transport/process/hidden_memory.h"
#include "transport/process/nvidia_gpus.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"
#include "transport/wire/runtime_directory.h"
#include "transport/wire/seqpacket_socket.h"
#include "transport/wire/socket_directory.h"
#include "worker/core/host_places.h"
#include "worker/core/login_address.h"
#include "worker/errand/tree_builder.h"
#include "worker/keeper/keeper.h"
#include "worker/keeper/release_allocation.h"

extern char** environ;

namespace monarch {

namespace {

constexpr Duration kBootstrapDeadline = Duration::seconds(30);
constexpr std::size_t kBootstrapBytes = kFrameHeaderBytes + limits::kControlPayloadBytes;
constexpr std::int64_t kWordsPerHeartbeat = 4;  // of one rank, at most
constexpr std::size_t kLogFolders = 5;          // monarch/hosts/<job>/<host>/logs
constexpr const char* kNoCgroupVariable = "MONARCH_NO_CGROUP";

struct Order {
  JobUuid job;
  Bootstrap bootstrap;
  bool own_place = false;  // its folders are this host's own
};

Result<Order> decode_order(const std::string& bytes) {
  MONARCH_ASSIGN(const Frame frame, decode_frame(bytes, limits::kControlPayloadBytes));
  MONARCH_ASSIGN(Bootstrap bootstrap, decode_payload<Bootstrap>(frame.payload));
  return Order{.job = frame.header.job, .bootstrap = std::move(bootstrap)};
}

// A stream has no frames' ends: what is there is an order when it decodes as a whole. Whoever closes the stream earlier
// gets told what is wrong with it.
Result<Order> read_order(int fd) {
  const Instant deadline = boot_now() + kBootstrapDeadline;
  std::string bytes;
  for (;;) {
    const Duration left = deadline - boot_now();
    if (left <= Duration::zero()) return Error{ErrorCode::kTimeout, "no bootstrap came on standard input in 30s"};
    pollfd polled{fd, POLLIN, 0};
    if (::poll(&polled, 1, static_cast<int>(left.count_milliseconds()) + 1) <= 0) continue;
    char buffer[4096];
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return errno_error("reading the bootstrap from standard input", errno);
    bytes.append(buffer, static_cast<std::size_t>(got));
    auto order = decode_order(bytes);
    if (order || got == 0) return order;
    if (bytes.size() > kBootstrapBytes) return Error{ErrorCode::kInvalid, "the bootstrap is too large"};
  }
}

int refuse(const Error& error) {
  Frame frame;
  BootstrapReply reply;
  reply.keeper_pid = ::getpid();
  reply.version = MONARCH_VERSION;
  reply.error = error.message;
  frame.payload = encode_payload(reply);
  const std::string bytes = encode_frame(frame);
  // Less than a pipe holds, and who does not read it is told by the exit code.
  (void)!::write(STDOUT_FILENO, bytes.data(), bytes.size());
  return kExitInternal;
}

// Of what the launcher left open only standard output and error stay, and nothing keeps its folder busy.
Status detach() {
  (void)::setsid();  // fails where it leads a session already, which is what is wanted
  if (::chdir("/") != 0) return errno_error("chdir /", errno);
  (void)::close_range(STDERR_FILENO + 1, std::numeric_limits<unsigned>::max(), 0);  // cannot fail for this range
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid() || ::dup2(null.get(), STDIN_FILENO) < 0) return errno_error("opening /dev/null", errno);
  return {};
}

CgroupUse cgroup_use() {
  const char* never = std::getenv(kNoCgroupVariable);
  return never != nullptr && std::string_view(never) == "1" ? CgroupUse::kNever : CgroupUse::kIfWritable;
}

std::string runtime_directory_of(const Environment& environment) {
  const auto named = environment.find("XDG_RUNTIME_DIR");
  return runtime_directory({.xdg_runtime_dir = named == environment.end() ? "" : named->second, .uid = ::geteuid()});
}

// A worker with a place of its own has its sockets and locks where no logout removes them. What is locked by the
// others, those of this machine's own jobs, is looked at as well, and they look here.
std::vector<std::string> lock_directories(bool own_place, const Environment& environment) {
  std::vector<std::string> directories = lasting_directories({.uid = ::geteuid()});
  directories.insert(own_place ? directories.end() : directories.begin(), runtime_directory_of(environment));
  return directories;
}

KeeperSetup worker_setup(Order order, mode_t umask, UniqueFd reply_to, const RankFileBytes& rank_files) {
  const Environment whole = release_loader_variables(environment_from(environ));
  KeeperSetup setup;
  setup.options.kind = KeeperKind::kWorker;
  setup.options.term_foretells = order.bootstrap.term_foretells;
  setup.job = order.job;
  setup.job_id = order.bootstrap.job_id;
  setup.host_name = order.bootstrap.host_name;
  setup.environment = order.bootstrap.login_environment ? login_environment(whole) : whole;
  setup.lock_directories = lock_directories(order.own_place, whole);
  setup.umask = umask;
  setup.cgroups = cgroup_use();
  setup.guarded.executable = "/proc/self/exe";
  setup.guarded.program = {"monarch-worker",           "daemon",       std::string(kJobArgument), setup.job.to_text(),
                           std::string(kHostArgument), setup.host_name};
  setup.guarded.environment = environment_lines(without_loader_variables(spawned_environment(setup.environment, {})));
  setup.guarded.descriptors = {{STDERR_FILENO, STDERR_FILENO}};
  setup.guarded.first_start.emplace_back(std::move(reply_to), STDOUT_FILENO);
  setup.guarded.umask = 077;
  setup.doors = {.directory = order.bootstrap.socket_directory,
                 .job_id = order.bootstrap.job_id,
                 .host_name = order.bootstrap.host_name,
                 .vault = order.bootstrap.checkpoint_memory > 0,
                 .post = order.bootstrap.post,
                 .period = order.bootstrap.heartbeat / kWordsPerHeartbeat};
  setup.tree = text(order.bootstrap.state_directory, '/', kTreeName);
  setup.state_directory = order.bootstrap.state_directory;
  setup.rank_files = rank_files;
  DaemonStash stash;
  stash.job = setup.job;
  stash.bootstrap = std::move(order.bootstrap);
  setup.stash = encode_payload(stash);
  return setup;
}

// Where another worker of this host was killed, its sockets are cleared away.
Status prepare_sockets(const std::string& directory) {
  if (directory.empty()) return {};
  (void)remove_socket_directory(directory);  // what cannot be is told by the next line
  return make_socket_directory(directory);
}

// A worker with a place of its own keeps its log there: nobody reads what it would say to the launcher's connection,
// and that would not end before the worker does.
Status take_own_place(Order& order) {
  if (!order.bootstrap.state_directory.empty()) return {};
  order.own_place = true;
  const std::string lasting = lasting_directory(::geteuid());
  const std::string sockets = host_socket_directory(lasting, order.job.to_text(), order.bootstrap.host_name);
  const Environment environment = environment_from(environ);
  MONARCH_TRY(settle_places(order.bootstrap, environment, sockets));
  settle_address(order.bootstrap, environment);
  MONARCH_TRY(make_socket_directory(lasting));  // the folder above: no less ours
  MONARCH_TRY(make_own_directories(order.bootstrap.log_directory, kLogFolders));
  const std::string path = order.bootstrap.log_directory + "/worker.log";
  const UniqueFd log(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log.valid() || ::dup2(log.get(), STDERR_FILENO) < 0)
    return errno_error(text("opening ", printable(path)), errno);
  if (const auto squatted = squatted_directory({.uid = ::geteuid()})) {
    log_warn(*squatted, " is somebody else's: sockets and locks of this host are in ", lasting);
  }
  return {};
}

int keep(Order order, mode_t umask, const RankFileBytes& rank_files) {
  UniqueFd reply_to(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!reply_to.valid()) return refuse(errno_error("copying standard output", errno));
  auto keeper = Keeper::create(worker_setup(std::move(order), umask, std::move(reply_to), rank_files));
  if (!keeper) return refuse(keeper.error());
  // The daemon has it now, and its end must be the daemon's to tell.
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null.valid()) (void)::dup2(null.get(), STDOUT_FILENO);  // the same descriptor table: it cannot run out
  return keeper.value()->run();
}

}  // namespace

int keeper_main(const RankFileBytes& rank_files) {
  hide_memory();  // the stash has the worker's secret key; a limit would be the ranks' too
  const mode_t umask = ::umask(077);
  auto order = read_order(STDIN_FILENO);
  if (!order) return refuse(order.error());
  // A cgroup's folder is named after the host.
  if (!is_folder_name(order.value().bootstrap.host_name)) {
    return refuse({ErrorCode::kInvalid, text("`", printable(order.value().bootstrap.host_name), "` names no host")});
  }
  if (const Status placed = take_own_place(order.value()); !placed) return refuse(placed.error());
  if (const Status detached = detach(); !detached) return refuse(detached.error());
  log_start({.name = text("keeper ", order.value().bootstrap.host_name)});
  const std::string sockets = order.value().bootstrap.socket_directory;
  if (const Status prepared = prepare_sockets(sockets); !prepared) return refuse(prepared.error());
  wake_nvidia_gpus();  // before there is anything here that cannot wait
  const std::string state = order.value().bootstrap.state_directory;
  const ReleaseOptions release{.job_id = order.value().bootstrap.job_id,
                               .job_uuid = order.value().job.to_text(),
                               .environment = environment_from(environ)};
  const bool in_a_step = order.value().bootstrap.term_foretells;
  const int code = keep(std::move(order).value(), umask, rank_files);
  // Nobody waits for it any more: the ranks have ended, and the supervisor was told.
  if (const Status removed = remove_trees(state); !removed.ok()) log_warn(removed.error().message);
  // Empty, but for logs; the daemon could not remove it while something lay there.
  if (::rmdir(state.c_str()) == 0) (void)::rmdir(state.substr(0, state.rfind('/')).c_str());
  if (!sockets.empty() && !remove_socket_directory(sockets)) log_warn(printable(sockets), " could not be removed");
  if (code != kExitOrphaned) return code;
  if (in_a_step) release_allocation(release);
  return 0;
}

}  // namespace monarch
