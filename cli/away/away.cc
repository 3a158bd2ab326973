#include "cli/away/away.h"

#include <algorithm>
#include <utility>

#include "cli/args/command_words.h"
#include "cli/args/say.h"
#include "cli/away/remote_viewer.h"
#include "cli/away/viewer_child.h"
#include "cli/commands.h"
#include "cli/job/job_argument.h"
#include "cli/job/spec_input.h"
#include "supervisor/client/job_glance.h"
#include "supervisor/client/new_job.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/launch/ssh/shipped.h"
#include "supervisor/launch/ssh/ssh_program.h"
#include "supervisor/launch/ssh/ssh_routes.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::uint64_t kLingers = 60;  // seconds in which a viewer there waits for us to come back

int complain(const Context& context, const std::string& message, const std::string& help, int exit_code) {
  say_error(context.terminal, {.id = "E0910", .message = message, .help = help});
  return exit_code;
}

bool may_pass(LaunchFailureKind kind) {
  switch (kind) {
    case LaunchFailureKind::kName:
    case LaunchFailureKind::kRefused:
    case LaunchFailureKind::kUnreachable:
    case LaunchFailureKind::kTimeout:
    case LaunchFailureKind::kClosed: return true;
    case LaunchFailureKind::kOther:
    case LaunchFailureKind::kHostKeyChanged:
    case LaunchFailureKind::kHostKeyUnknown:
    case LaunchFailureKind::kHostKeyRevoked:
    case LaunchFailureKind::kAuthentication:
    case LaunchFailureKind::kShellNoise:
    case LaunchFailureKind::kDiskFull:
    case LaunchFailureKind::kNotExecutable:
    case LaunchFailureKind::kArchitecture:
    case LaunchFailureKind::kExec:
    case LaunchFailureKind::kCallBack:
    case LaunchFailureKind::kVersion:
    case LaunchFailureKind::kForwarding:
    case LaunchFailureKind::kNotWritable:
    case LaunchFailureKind::kResources:
    case LaunchFailureKind::kLibraries:
    case LaunchFailureKind::kLauncherGone:
    case LaunchFailureKind::kInterface:
    case LaunchFailureKind::kUnwell:
    case LaunchFailureKind::kNotGranted: return false;
  }
  return false;
}

// One line, as a host that does not start is told of.
DoorFailure door_failure(const std::string& host, const LaunchFailure& failure) {
  std::string message = text(host, ": ", name_of(failure.kind), " (", failure.phase, ", ", to_text(failure.elapsed),
                             "): ", printable(failure.message));
  if (!failure.words.empty()) message += text("; it said: ", printable(failure.words));
  return {.message = std::move(message),
          .help = failure.again.empty() ? "" : text("to see: ", printable(failure.again)),
          .exit_code = is_host_key(failure.kind) ? kExitHostKey : kExitUnreachable,
          .worth_retrying = may_pass(failure.kind)};
}

class SshDoor final : public ViewerDoor {
 public:
  SshDoor(EventLoop& loop, std::string host, SshProgramOptions options)
      : loop_(loop), host_(std::move(host)), options_(std::move(options)) {}

  void open(Handlers handlers) override {
    close();
    // Owner: program_; what an earlier one still says is said to nobody.
    auto mine = std::make_shared<const Handlers>(std::move(handlers));
    current_ = mine;
    const auto unless_closed = [this, weak = std::weak_ptr<const Handlers>(mine)](auto act) {
      loop_.defer([weak, act = std::move(act)] {
        if (const auto still = weak.lock()) act(*still);
      });
    };
    auto program = SshProgram::start(
        loop_, options_,
        {.on_ready =
             [unless_closed](SshProgramReady ready) {
               auto stream = std::make_shared<UniqueFd>(std::move(ready.stream));
               unless_closed([stream](const Handlers& told) { told.on_open(std::move(*stream)); });
             },
         .on_ended = [this](const SshProgramEnd& end) { note(end); },
         .on_failed =
             [this, unless_closed](const LaunchFailure& failure) {
               unless_closed([said = door_failure(host_, failure)](const Handlers& told) { told.on_failed(said); });
             }});
    if (program.ok()) {
      program_ = std::move(*program);
      return;
    }
    unless_closed([why = program.error().message](const Handlers& told) {
      told.on_failed({.message = why, .help = "", .exit_code = kExitUnreachable, .worth_retrying = false});
    });
  }

  void close() override {
    current_.reset();
    program_.reset();
  }

  std::string last_words() const override { return last_words_; }

 private:
  void note(const SshProgramEnd& end) {
    last_words_ = end.why;
    if (end.why.empty() && end.exit_status && *end.exit_status != 0) {
      last_words_ = text("monarch there ended with ", *end.exit_status);
    }
    if (!end.words.empty()) last_words_ += text(last_words_.empty() ? "" : ": ", printable(end.words));
  }

  EventLoop& loop_;
  std::string host_;
  SshProgramOptions options_;
  std::shared_ptr<const Handlers> current_;  // owners: this, and a call that is on its way
  std::unique_ptr<SshProgram> program_;
  std::string last_words_;
};

// By what the job's own spec says of the host, and nothing that was learnt since.
Result<SshRoute> route_to(const JobView& view, const std::string& host) {
  MONARCH_ASSIGN(const std::string words, view.spec_text());
  MONARCH_ASSIGN(const std::string directory, view.spec_directory());
  MONARCH_ASSIGN(const JobSpec spec, parse_stored_spec(words, directory));
  MONARCH_ASSIGN(std::vector<SshLauncherHost> routes, ssh_routes(spec, SshUser::of_this_process()));
  for (SshLauncherHost& known : routes) {
    if (known.name == host) return std::move(known.route);
  }
  return Error{ErrorCode::kInvalid, "its spec does not name that host"};
}

// The very monarch that the job was started with: another one might read its journal otherwise. Where ours is another
// by now, theirs lies there.
Result<std::shared_ptr<const WorkerImage>> bundle_of(const Away& where, const SupervisorBinaries& binaries) {
  MONARCH_ASSIGN(std::shared_ptr<const WorkerImage> ours,
                 read_bundle(shipped_monarch(binaries.monarch), binaries.worker));
  if (ours->file.sha256 == where.bundle || where.monarch_bytes == 0) return ours;
  auto theirs = std::make_shared<WorkerImage>();
  theirs->file = {
      .sha256 = where.bundle, .size = where.monarch_bytes + where.worker_bytes, .head = where.monarch_bytes};
  theirs->machine = ours->machine;
  return std::shared_ptr<const WorkerImage>(std::move(theirs));
}

ViewerOrder order_of(const JobView& view, const RemoteCommand& command, const Context& context) {
  ViewerOrder order{.words = command.words,
                    .job = view.id(),
                    .terminal = to_text(TerminalFacts::of_this_process()),
                    .junit = command.reports.junit != nullptr,
                    .artifacts = command.reports.artifacts != nullptr,
                    .lingers = command.follows ? kLingers : 0};
  for (const std::string& name : display_variables()) {
    if (context.env.has(name)) order.variables.emplace_back(name, context.env.get(name));
  }
  return order;
}

// The id of the job that the command means; nothing: as ever, the command says why.
std::optional<JobView> meant_job(const std::string& written) {
  const auto state = open_state();
  if (!state.ok()) return std::nullopt;
  const auto jobs = list_jobs(*state);
  if (!jobs.ok()) return std::nullopt;
  const auto id = resolve_job(*jobs, written);
  if (!id.ok()) return std::nullopt;
  auto view = JobView::open(*state, *id);
  if (!view.ok()) return std::nullopt;
  return std::move(*view);
}

// What goes on where a viewer has ended: of what was written meanwhile nothing is shown, rather than all of it twice.
std::vector<std::string> words_again(const Command& command, const Arguments& arguments,
                                     std::vector<std::string> words) {
  if (command.name == "attach" || command.name == "wait" || command.name == "stop") return words;
  if (!arguments.has("follow") || arguments.has("tail")) return {};
  words.emplace_back("--tail=0");
  return words;
}

bool follows(const Command& command, const Arguments& arguments) {
  return command.name == "attach" || command.name == "wait" || command.name == "stop" || arguments.has("follow");
}

}  // namespace

std::optional<Away> away_of(const JobView& view) {
  const auto text = view.directory().directory.read_file(kAwayFile, kAwayBytes);
  if (!text.ok()) return std::nullopt;
  // A start that failed has left its verdict here, and nothing there.
  const auto ended_here = view.directory().directory.read_file(kVerdictFile, 1U << 20U);
  auto parsed = parse_away(*text);
  if (ended_here.ok()) return std::nullopt;
  // Nor is it a job of this machine where that cannot be read: whoever wants more of it than its name says so.
  return parsed.ok() ? std::move(*parsed) : Away{};
}

int run_there(const JobView& view, const RemoteCommand& command, const Context& context, SignalFd* signals) {
  const auto where = away_of(view);
  if (!where || where->host.empty()) {
    return complain(context, text(view.path(), "/", kAwayFile, " does not say where ", view.id(), " lives"),
                    text("monarch rm --here ", view.id()), kExitUnreachable);
  }
  if (where->monarch.empty()) {
    return complain(context,
                    text(view.id(), " is being started on ", printable(where->host), ", and does not live there yet"),
                    text("see ", view.path(), "/", kSupervisorLogFile), kExitUnreachable);
  }
  const auto failed = [&](const Error& error, int exit_code) {
    return complain(context, text(view.id(), " lives on ", where->host, ": ", error.message), "", exit_code);
  };
  auto route = route_to(view, where->host);
  if (!route.ok()) return failed(route.error(), kExitUsage);
  const auto binaries = find_binaries(context.executable, context.env.get("MONARCH_WORKER"));
  if (!binaries.ok()) return failed(binaries.error(), kExitInternal);
  auto bundle = bundle_of(*where, *binaries);
  if (!bundle.ok()) return failed(bundle.error(), kExitInternal);
  std::unique_ptr<SignalFd> own;
  if (signals == nullptr) {
    auto taken = SignalFd::create(SignalPolicy::signals(command.kind));
    if (!taken.ok()) return failed(taken.error(), kExitInternal);
    own = std::move(*taken);
    signals = own.get();
  }
  const auto loop = EventLoop::create();
  if (!loop.ok()) return failed(loop.error(), kExitInternal);
  SshDoor door(**loop, where->host, {.route = std::move(*route), .bundle = std::move(*bundle), .word = "over-ssh"});
  const auto viewer = RemoteViewer::create(**loop, door, context.terminal, *signals,
                                           {.order = order_of(view, command, context),
                                            .kind = command.kind,
                                            .again = command.again,
                                            .host = where->host,
                                            .junit = command.reports.junit,
                                            .artifacts = command.reports.artifacts});
  if (!viewer.ok()) return failed(viewer.error(), kExitInternal);
  const RemoteViewerEnd end = (*viewer)->follow();
  // For `ps` and for JOB alone; without it they know less, and the command has done what it was for.
  if (end.job && !end.job->life.empty()) (void)write_glance(view.directory().directory, *end.job);
  return end.exit_code;
}

int follow_there(const JobView& view, const Arguments& arguments, const Context& context, SignalFd& signals,
                 const FollowThere& follow) {
  std::vector<std::string> words = command_words(follow_command(), arguments, {view.id()}, {"junit", "artifacts"});
  if (!follow.spec_name.empty()) words.push_back(text("--spec-name=", follow.spec_name));
  if (follow.until_running) words.emplace_back("--until-running");
  std::vector<std::string> again = words;
  if (!follow.until_running) again.emplace_back("--from-now");
  return run_there(view,
                   {.words = std::move(words),
                    .again = std::move(again),
                    .kind = ViewerKind::kOwner,
                    .follows = true,
                    .reports = follow.reports},
                   context, &signals);
}

Command where_the_job_lives(Command command) {
  const auto here = command.run;
  const Command known = command;
  command.run = [here, known](const Arguments& arguments, Context& context) {
    // [JOB] SIGNAL: the first of two.
    std::vector<std::string> positionals = arguments.positionals();
    const bool named = positionals.size() >= known.positionals.size();
    const auto view = meant_job(named && !positionals.empty() ? positionals.front() : std::string());
    if (!view || !away_of(*view)) return here(arguments, context);
    if (named && !positionals.empty()) positionals.erase(positionals.begin());
    positionals.insert(positionals.begin(), view->id());
    RemoteCommand there{.words = {}, .follows = follows(known, arguments)};
    if (arguments.has("junit") || arguments.has("artifacts")) {
      const auto reports = take_reports(arguments, context);
      if (!reports) return kExitUsage;
      there.reports = *reports;
    }
    there.words = command_words(known, arguments, positionals, {"junit", "artifacts"});
    there.again = words_again(known, arguments, there.words);
    return run_there(*view, there, context);
  };
  return command;
}

}  // namespace monarch
