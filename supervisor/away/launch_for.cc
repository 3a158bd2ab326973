#include "supervisor/away/launch_for.h"

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "supervisor/away/host_failure.h"
#include "supervisor/client/away.h"
#include "supervisor/client/shell_values.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/journal/job_lock.h"
#include "supervisor/launch/fair_timer.h"
#include "supervisor/launch/ssh/shipped.h"
#include "supervisor/launch/ssh/ssh_launcher.h"
#include "supervisor/launch/ssh/ssh_program.h"
#include "supervisor/launch/ssh/ssh_routes.h"
#include "supervisor/loop/startup.h"
#include "supervisor/workspace/pack_thread.h"
#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/log.h"
#include "transport/base/loopback.h"
#include "transport/base/text.h"
#include "transport/messages/launch.h"
#include "transport/messages/viewer.h"
#include "transport/process/hidden_memory.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame_stream.h"
#include "transport/wire/messages.h"

extern char** environ;

namespace monarch {

namespace {

constexpr char kWordThere[] = "supervise-there";
// How long the process there may take to say that its supervisor is ready, or why not: that has kReadyDeadline itself.
constexpr Duration kStartDeadline = limits::kReadyDeadline + Duration::seconds(20);

class LaunchFor {
 public:
  explicit LaunchFor(const LaunchForOptions& options) : options_(options) {}
  ~LaunchFor();
  StartFailure open();
  int run();

 private:
  Status open_files();
  Status reach();
  void on_ready(SshProgramReady ready);
  void on_ended(const SshProgramEnd& end);
  Status ask_for_start(UniqueFd stream);
  void on_frame(const Frame& frame);
  void on_started(const StartedThere& started);
  void on_order(const Frame& frame);
  Status open_launcher(const FrameHeader& welcome);
  LauncherHandlers handlers();
  template <class Message>
  void say(const Message& message);
  void refuse(StartFailure failure);
  void leave(int exit_code, const std::string& why);

  const LaunchForOptions& options_;
  std::optional<SecureDirectory> directory_;
  std::string job_id_;
  std::unique_ptr<JobLock> lock_;
  LoadedSpec spec_;
  std::map<std::string, std::string> shell_;
  SshAccess access_;
  std::shared_ptr<const WorkerImage> bundle_;  // owners: this, the program's start
  Away away_;
  std::string address_;  // of the first host, where workers call
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<SshProgram> program_;
  std::unique_ptr<FrameStream> stream_;
  std::unique_ptr<SshLauncher> launcher_;
  FrameHeader welcome_;
  std::optional<FairTimer> patience_;
  bool told_ = false;  // whoever waits for the start
  int exit_code_ = 0;
};

LaunchFor::~LaunchFor() {
  launcher_.reset();
  if (directory_) WorkspacePack::remove(directory_->fd());
}

StartFailure LaunchFor::open() {
  auto directory = SecureDirectory::open(options_.job_directory);
  if (!directory.ok()) return {.exit_code = kExitInternal, .message = directory.error().message};
  directory_ = std::move(*directory);
  auto lock = JobLock::take(*directory_, this_process_as_holder(wall_now()));
  if (!lock.ok()) {
    return {.exit_code = lock.error().code == ErrorCode::kBusy ? kExitBusy : kExitInternal,
            .message = lock.error().message};
  }
  lock_ = std::move(*lock);
  if (const Status opened = open_files(); !opened.ok()) {
    return {.exit_code = opened.error().code == ErrorCode::kInvalid ? kExitUsage : kExitInternal,
            .message = opened.error().message};
  }
  if (const Status reached = reach(); !reached.ok()) {
    return {.exit_code = kExitInternal, .message = reached.error().message};
  }
  return {};
}

// What is to be known here before anything is reached.
Status LaunchFor::open_files() {
  const std::string path = directory_->path();
  job_id_ = path.substr(path.rfind('/') + 1);
  MONARCH_ASSIGN(spec_, load_job_spec(*directory_));
  if (!spec_.spec.supervised_away()) {
    return Error{ErrorCode::kInvalid, "the job is not one of `supervisor: {on: first}`"};
  }
  MONARCH_ASSIGN(shell_, shell_values(spec_.spec, environ));
  SshUser user = SshUser::of_this_process();
  user.accept_new_host_keys = options_.accept_new_host_keys;
  MONARCH_ASSIGN(access_, ssh_access(spec_.spec, user, options_.worker));
  MONARCH_ASSIGN(bundle_, read_bundle(shipped_monarch(options_.monarch), options_.worker));
  away_ = {.host = access_.hosts.front().name,
           .bundle = bundle_->file.sha256,
           .monarch = "",
           .directory = "",
           .monarch_bytes = bundle_->file.head,
           .worker_bytes = bundle_->file.size - bundle_->file.head};
  return directory_->write_file(kAwayFile, write_away(away_));
}

Status LaunchFor::reach() {
  MONARCH_ASSIGN(loop_, EventLoop::create());
  const auto failed = [this](LaunchFailure failure) {
    refuse(start_failure_of(access_.hosts.front().name, bounded(std::move(failure))));
  };
  MONARCH_ASSIGN(
      program_, SshProgram::start(*loop_, {.route = access_.hosts.front().route, .bundle = bundle_, .word = kWordThere},
                                  {.on_ready = [this](SshProgramReady ready) { on_ready(std::move(ready)); },
                                   .on_ended = [this](const SshProgramEnd& end) { on_ended(end); },
                                   .on_failed = failed}));
  return {};
}

void LaunchFor::on_ready(SshProgramReady ready) {
  if (ready.copied > Duration::zero()) {
    log_info(away_.host, ": monarch copied in ", to_text(ready.copied), ": ", ready.path);
  }
  away_.monarch = std::move(ready.path);
  if (const Status asked = ask_for_start(std::move(ready.stream)); !asked.ok()) {
    refuse({.exit_code = kExitInternal, .message = asked.error().message});
  }
}

Status LaunchFor::ask_for_start(UniqueFd stream) {
  UniqueFd output(::fcntl(stream.get(), F_DUPFD_CLOEXEC, 3));
  if (!output.valid()) return errno_error("fcntl F_DUPFD_CLOEXEC", errno);
  MONARCH_ASSIGN(stream_, FrameStream::create(*loop_, std::move(stream), std::move(output),
                                              {.on_frame = [this](const Frame& frame) { on_frame(frame); },
                                               // The program's end says more.
                                               .on_closed = [](const Error&) {}}));
  MONARCH_ASSIGN(std::string spec, directory_->read_file(kSpecFile, limits::kSpecBytes));
  StartThere wanted{.version = MONARCH_VERSION,
                    .job_id = job_id_,
                    .spec = std::move(spec),
                    .spec_directory = spec_.spec.directory,
                    .shell = {shell_.begin(), shell_.end()},
                    .needs_address = spec_.spec.pool_size() > 1 && spec_.spec.control.address.empty()};
  say(wanted);
  patience_.emplace(*loop_);
  patience_->start(kStartDeadline, [this](const std::string& late) {
    refuse({.exit_code = kExitInternal,
            .message = text(away_.host, ": the supervisor there did not say that it is ready within ",
                            to_text(kStartDeadline), late)});
  });
  return {};
}

void LaunchFor::on_ended(const SshProgramEnd& end) {
  const std::string how =
      end.why.empty() ? text("our process there ended", end.exit_status ? text(" with status ", *end.exit_status) : "")
                      : end.why;
  if (told_) return leave(0, how);
  LaunchFailure failure{.kind = end.why.empty() ? LaunchFailureKind::kExec : LaunchFailureKind::kClosed,
                        .phase = "supervisor",
                        .message = text(how, " before the supervisor there was ready"),
                        .words = end.words,
                        .again = reproducer(access_.hosts.front().route)};
  refuse(start_failure_of(away_.host, bounded(std::move(failure))));
}

template <class Message>
void LaunchFor::say(const Message& message) {
  const Status sent = stream_->send(frame_of(message, {.job = welcome_.job, .term = welcome_.term}));
  if (!sent.ok() && sent.error().code != ErrorCode::kGone) leave(kExitInternal, sent.error().message);
}

void LaunchFor::on_frame(const Frame& frame) {
  if (told_) return on_order(frame);
  const Status taken =
      route(frame.header, frame.payload, when<StartedThere>([&](const StartedThere& started) { on_started(started); }));
  if (taken.ok()) return;
  refuse({.exit_code = kExitInternal, .message = text(away_.host, ": not an answer of our process there")});
}

void LaunchFor::on_started(const StartedThere& started) {
  patience_.reset();
  if (started.exit_code != 0) {
    return refuse({.exit_code = started.exit_code,
                   .message = text("on ", away_.host, ": ", printable(started.error)),
                   .log_tail = started.log_tail});
  }
  const std::string& written = spec_.spec.control.address;
  address_ = written.empty() ? started.address : written;
  // There it was asked for where other hosts need it; the one host calls itself.
  if (address_.empty()) address_ = kLoopbackAddress;
  away_.directory = started.directory;
  const Status kept = directory_->write_file(kAwayFile, write_away(away_));
  if (!kept.ok()) return refuse({.exit_code = kExitInternal, .message = kept.error().message});
  log_info(away_.host, ": the supervisor there is ready, in ", printable(started.directory));
  told_ = true;
  write_ready(options_.ready_fd, {});
}

void LaunchFor::on_order(const Frame& frame) {
  // Of a host that there is, once they can be launched.
  const auto with = [this](std::uint32_t host, const auto& act) -> Status {
    if (launcher_ == nullptr || host >= access_.hosts.size()) return Error{ErrorCode::kInvalid, "of no host"};
    act(HostId(host));
    return {};
  };
  const Status taken =
      route(frame.header, frame.payload, when<LauncherWelcome>([&](const LauncherWelcome&) -> Status {
              if (launcher_) return Error{ErrorCode::kInvalid, "again"};
              if (const Status opened = open_launcher(frame.header); !opened.ok())
                leave(kExitInternal, opened.error().message);
              return {};
            }),
            when<LaunchHost>([&](const LaunchHost& order) {
              return with(order.host, [&](HostId host) { launcher_->launch(host, order.bootstrap); });
            }),
            when<EndHost>(
                [&](const EndHost& order) { return with(order.host, [&](HostId host) { launcher_->destroy(host); }); }),
            when<HostSaidGoodbye>([&](const HostSaidGoodbye& said) {
              return with(said.host, [&](HostId host) { launcher_->on_goodbye(host, said.orderly); });
            }),
            when<LeaveLauncher>([&](const LeaveLauncher& order) { leave(0, printable(order.reason)); }),
            when<Refused>([&](const Refused& refused) { leave(kExitInternal, printable(refused.message)); }));
  if (taken.ok()) return;
  leave(kExitInternal, text(away_.host, ": a message of type ", frame.header.type, " that cannot be meant"));
}

Status LaunchFor::open_launcher(const FrameHeader& welcome) {
  welcome_ = welcome;
  SshLauncherOptions options{.job = welcome.job,
                             .job_id = job_id_,
                             .term = welcome.term,
                             .access = access_,
                             .way_back = {.address = address_},
                             .workspace = spec_.spec.workspace.has_value(),
                             .pool = {.parallel = access_.parallel, .seed = static_cast<std::uint64_t>(::getpid())}};
  MONARCH_ASSIGN(launcher_, SshLauncher::create(*loop_, std::move(options), handlers()));
  if (!spec_.spec.workspace) return {};
  auto folder = directory_->duplicate();  // the tree is on this machine
  const Status packed =
      folder.ok() ? launcher_->pack_workspace(std::move(*folder), *spec_.spec.workspace) : Status(folder.error());
  if (!packed.ok()) launcher_->on_workspace(packed.error());
  return {};
}

LauncherHandlers LaunchFor::handlers() {
  return {.on_launched =
              [this](HostId host, LaunchedWorker worker) {
                say(HostLaunched{.host = host.value(), .worker = std::move(worker)});
              },
          .on_failed =
              [this](HostId host, LaunchFailure failure) {
                say(HostNotLaunched{.host = host.value(), .failure = bounded(std::move(failure))});
              },
          .on_ended =
              [this](HostId host, std::string how, bool orderly) {
                say(HostEnded{.host = host.value(), .how = std::move(how), .orderly = orderly});
              }};
}

void LaunchFor::refuse(StartFailure failure) {
  if (std::exchange(told_, true)) return;
  log_error(failure.message);
  write_ready(options_.ready_fd, failure);
  exit_code_ = failure.exit_code;
  loop_->stop();
}

void LaunchFor::leave(int exit_code, const std::string& why) {
  if (loop_->stopped()) return;
  log_info("leaving: ", why);
  exit_code_ = exit_code;
  loop_->stop();
}

int LaunchFor::run() {
  loop_->run();
  return exit_code_;
}

}  // namespace

int launch_for(const LaunchForOptions& options) {
  log_start({.name = "launch-for", .fd = STDERR_FILENO, .level = LogLevel::kInfo});
  refuse_core_dumps();
  hide_memory();  // values of the shell are in it
  LaunchFor launch(options);
  const StartFailure failure = launch.open();
  if (failure.exit_code == 0) return launch.run();
  log_error(failure.message);
  write_ready(options.ready_fd, failure);
  return failure.exit_code;
}

}  // namespace monarch
