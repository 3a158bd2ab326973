#include "supervisor/launch/command/command_launcher.h"

#include <algorithm>
#include <utility>

#include "supervisor/launch/command/command_talk.h"
#include "supervisor/launch/launcher_checks.h"
#include "supervisor/launch/open_launcher.h"
#include "transport/base/log.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::uint32_t kAttempts = 3;
// What a launch that is broken off has still said to the host is done there by then.
constexpr Duration kSettled = Duration::seconds(1);
constexpr std::string_view kUntoldByShell = "the shell there does not know from which address it was reached";

}  // namespace

CommandLauncher::CommandLauncher(EventLoop& loop, Guard& guard, CommandLauncherOptions options,
                                 LauncherHandlers handlers)
    : loop_(loop),
      options_(std::move(options)),
      handlers_(std::move(handlers)),
      programs_(guard, options_.term),
      hosts_(options_.spec.hosts.size()) {}

CommandLauncher::~CommandLauncher() {
  for (Host& host : hosts_) loop_.cancel(std::exchange(host.retry, 0));
}

void CommandLauncher::launch(HostId host, const Bootstrap& bootstrap) {
  Host& state = at(host);
  drop(state);
  state = {.phase = Phase::kWaiting, .bootstrap = bootstrap, .talk = nullptr, .began = loop_.now()};
  enqueue(host, Duration::zero());
}

// A failure told may launch another: never within the core's own turn.
void CommandLauncher::enqueue(HostId host, Duration wait) {
  loop_.cancel(std::exchange(at(host).retry, 0));
  at(host).retry = loop_.at(loop_.now() + wait, [this, host] {
    at(host).retry = 0;
    queue_.push_back(host);
    fill();
  });
}

void CommandLauncher::fill() {
  const auto busy = [](const Host& host) { return host.talk != nullptr && host.phase != Phase::kLaunched; };
  auto under_way = static_cast<std::uint32_t>(std::count_if(hosts_.begin(), hosts_.end(), busy));
  while (under_way < options_.spec.parallel && !queue_.empty()) {
    const HostId host = queue_.front();
    queue_.pop_front();
    const bool wanted = at(host).phase == Phase::kWaiting || at(host).phase == Phase::kEnding;
    if (!wanted || at(host).talk || at(host).retry != 0) continue;  // its story has gone on
    start(host);
    if (at(host).talk) ++under_way;
  }
}

void CommandLauncher::start(HostId host) {
  Host& state = at(host);
  const bool ends = state.phase == Phase::kEnding;
  if (!ends) state.phase = Phase::kLaunching;
  ++state.tries;
  RemoteOrder order = order_with(ends ? RemotePurpose::kEnd : RemotePurpose::kStart, options_.image.get(),
                                 options_.spec.worker.value_or(""));
  order.worker_key = "launch.command.worker";
  order.mark = {.job_uuid = options_.job.to_text(), .host_name = spec_of(host).name, .job_id = options_.job_id};
  ProgramTalkHandlers told{.on_place = {},
                           .on_answer = [this, host](const RemoteAnswer& answer) { on_answer(host, answer); },
                           .on_end = [this, host] { at(host).talk.reset(); }};
  if (!ends) {
    told.on_place = [this, host](const std::string& from) -> std::optional<LaunchFailure> {
      Bootstrap& there = at(host).bootstrap;
      const std::string& address = options_.address.empty() ? from : options_.address;
      if (auto refused = call_back_at(there, address, kUntoldByShell)) return refused;
      at(host).talk->give_bootstrap(bootstrap_frame(options_.job, options_.term, there));
      return std::nullopt;
    };
  }
  ProgramTalkOptions options = command_talk(options_.spec, host, options_.image);
  options.log = text(options_.log_directory, "/command.", spec_of(host).name, ".log");
  auto talk = ProgramTalk::start(loop_, programs_, std::move(order), std::move(options), std::move(told));
  if (!talk.ok()) return on_failure(host, {.phase = "start", .message = talk.error().message}, false, false);
  state.talk = std::move(*talk);
}

void CommandLauncher::on_answer(HostId host, const RemoteAnswer& answer) {
  Host& state = at(host);
  if (const auto* reply = std::get_if<BootstrapReply>(&answer)) {
    state.phase = Phase::kLaunched;
    const Duration copy = state.talk->copy();
    handlers_.on_launched(host, {.reply = *reply,
                                 .control_endpoint = state.bootstrap.control_endpoint,
                                 .bulk_endpoint = state.bootstrap.bulk_endpoint,
                                 .again = {},
                                 .times = {.copy = copy, .start = loop_.now() - state.began - copy}});
  } else if (const auto* ended = std::get_if<RemoteEnded>(&answer)) {
    const RemoteEnded how = *ended;
    state.talk.reset();
    tell_ended(host, how.how(), how.orderly());
  } else {
    const LaunchFailure failure = std::get<LaunchFailure>(answer);
    const bool may_run = state.talk->handed_over() && failure.kind != LaunchFailureKind::kNotExecutable;
    const bool placed = state.talk->placed();
    state.talk.reset();
    on_failure(host, failure, placed, may_run);
  }
  fill();
}

void CommandLauncher::on_failure(HostId host, LaunchFailure failure, bool placed, bool may_run) {
  Host& state = at(host);
  if (state.phase == Phase::kEnding) {
    if (state.tries == 1) log_warn(spec_of(host).name, ": ending its worker: ", printable(failure.message));
    return enqueue(host, pause_before_retry(state.tries - 1));  // until the host has answered nothing is proven
  }
  if (state.phase != Phase::kLaunching) return;
  const bool passes = failure.kind == LaunchFailureKind::kTimeout || failure.kind == LaunchFailureKind::kClosed;
  if (!placed && passes && state.tries < kAttempts) {
    state.phase = Phase::kWaiting;
    return enqueue(host, pause_before_retry(state.tries - 1));
  }
  if (state.tries > 1) failure.message += text(" (", state.tries, " attempts)");
  for (const std::string& word : spec_of(host).command) failure.again += shell_word(word) + " ";
  failure.again.pop_back();
  failure.elapsed = loop_.now() - state.began;
  state.phase = may_run ? Phase::kUnknown : Phase::kUntouched;
  loop_.defer(scope_.guard([this, host, failure = std::move(failure)] { handlers_.on_failed(host, failure); }));
}

void CommandLauncher::destroy(HostId host) {
  Host& state = at(host);
  if (state.phase == Phase::kEnding) return;  // it is at it
  const bool launching = state.phase == Phase::kLaunching && state.talk != nullptr;
  const bool reached = !launching || state.talk->placed();
  const bool said = launching && state.talk->handed_over();
  const bool untouched =
      !reached || state.phase == Phase::kWaiting || state.phase == Phase::kUntouched || state.phase == Phase::kEnded;
  drop(state);
  state.phase = untouched ? Phase::kUntouched : Phase::kEnding;
  state.tries = 0;
  if (!untouched) return enqueue(host, said ? kSettled : Duration::zero());
  // Not within the core's own turn. Who was never reached there needs no proof that nothing runs.
  loop_.defer(
      scope_.guard([this, host, reached] { tell_ended(host, reached ? "was not running" : "was not reached", true); }));
}

void CommandLauncher::on_goodbye(HostId host, bool orderly) {
  const Phase phase = at(host).phase;
  if (phase == Phase::kEnded || phase == Phase::kUntouched || phase == Phase::kWaiting) return;
  drop(at(host));
  tell_ended(host, orderly ? "it left" : "its keeper was killed, and its ranks with it", orderly);
}

void CommandLauncher::tell_ended(HostId host, std::string how, bool orderly) {
  at(host).phase = Phase::kEnded;
  handlers_.on_ended(host, std::move(how), orderly);
}

void CommandLauncher::drop(Host& host) {
  loop_.cancel(std::exchange(host.retry, 0));
  if (!std::exchange(host.talk, nullptr)) return;
  loop_.defer(scope_.guard([this] {
    fill();  // others waited for its place
  }));
}

Result<std::unique_ptr<Launcher>> open_command(const LaunchSurroundings& around, LauncherHandlers handlers) {
  CommandLauncherOptions options{.job = around.job,
                                 .job_id = around.job_id,
                                 .term = around.term,
                                 .spec = *around.spec.launch.as<LaunchCommand>(),
                                 .address = around.spec.control.address,
                                 .log_directory = around.log_directory};
  if (!options.spec.worker) {
    MONARCH_ASSIGN(options.image, read_worker_image(around.worker_path));
  }
  return std::unique_ptr<Launcher>(
      std::make_unique<CommandLauncher>(around.loop, around.guard, std::move(options), std::move(handlers)));
}

std::vector<doctor::Check> command_checks(const JobSpec& spec, const doctor::Variables& environment) {
  const auto run = [program = spec.launch.as<LaunchCommand>()->hosts.front().command.front(), environment] {
    const auto path = environment.find("PATH");
    const auto found = doctor::find_program(program, "/", path == environment.end() ? "" : path->second);
    if (found.ok()) return doctor::Findings{{.check = "launch.command", .found = *found}};
    return doctor::Findings{{.check = "launch.command",
                             .health = doctor::Health::kFailed,
                             .found = found.error().message,
                             .means = "no host can be reached",
                             .fix = "install it, or name it by its path in launch.command.exec"}};
  };
  return {{.name = "launch.command", .run = run}};
}

}  // namespace monarch
