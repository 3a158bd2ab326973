#include "worker/keeper/guarded_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "transport/base/limits.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/wire/seqpacket_socket.h"
#include "worker/core/environment.h"

namespace monarch {

namespace {

// From its exit to the end of what it had sent. Longer only if a child of its own holds the channel open.
constexpr Duration kDrainDeadline = Duration::milliseconds(200);

}  // namespace

GuardedProcess::GuardedProcess(EventLoop& loop, ChildWatch& watch, GuardedCommand command, GuardedHandlers handlers)
    : loop_(loop), watch_(watch), command_(std::move(command)), handlers_(std::move(handlers)) {}

GuardedProcess::~GuardedProcess() {
  loop_.forget(exec_watch_);
  if (child_) watch_.reap(child_->pid());
  loop_.cancel(drain_timer_);
}

std::variant<pid_t, StepFailure> GuardedProcess::start() {
  MONARCH_ASSERT(!child_);
  auto pair = make_channel_pair();
  if (!pair) return StepFailure{EMFILE, pair.error().message};
  SpawnOptions options;
  options.executable = command_.executable;
  options.program = command_.program;
  for (std::string& word : std::exchange(command_.first_words, {})) options.program.push_back(std::move(word));
  options.environment = command_.environment;
  options.environment.push_back(text(kKeeperFdVariable, '=', kGuardedChannelDescriptor));
  options.descriptors = {{pair.value().second.get(), kGuardedChannelDescriptor}};
  if (!kept_.empty()) options.environment.push_back(text(kKeptFdsVariable, '=', kept_.size()));
  for (const UniqueFd& kept : kept_) {
    const auto index = static_cast<int>(&kept - kept_.data());
    options.descriptors.push_back({kept.get(), kGuardedChannelDescriptor + 1 + index});
  }
  const auto first_start = std::exchange(command_.first_start, {});
  for (const auto& [source, target] : first_start) options.descriptors.push_back({source.get(), target});
  for (const ChildDescriptor& descriptor : command_.descriptors) {
    const bool taken = std::any_of(options.descriptors.begin(), options.descriptors.end(),
                                   [&](const ChildDescriptor& d) { return d.target == descriptor.target; });
    if (!taken) options.descriptors.push_back(descriptor);
  }
  options.umask = command_.umask;
  options.descriptor_limit = command_.descriptor_limit;
  // It outlives a killed keeper for as long as it takes to clean up.
  options.on_parent_death = OnParentDeath::kLive;
  auto result = Child::fork(options);
  if (auto* failure = std::get_if<StepFailure>(&result)) return std::move(*failure);
  auto channel = SeqpacketChannel::create(
      loop_, std::move(pair.value().first),
      {.on_frame = [this](Frame frame,
                          std::vector<UniqueFd> fds) { handlers_.on_frame(std::move(frame), std::move(fds)); },
       .on_closed = [this](const Error& reason) { channel_closed(reason); }},
      {.queue_frames = limits::kGuardedFrames, .queue_bytes = limits::kGuardedBytes});
  if (!channel) return StepFailure{EMFILE, channel.error().message};  // the child ends at its closed gate, unwatched
  child_ = std::move(std::get<std::unique_ptr<Child>>(result));
  channel_ = std::move(channel).value();
  const auto exec_watch = loop_.watch(child_->exec_descriptor(), Interest::kRead, [this](Readiness) {
    if (child_->exec_state() == ExecState::kPending) return;
    loop_.forget(std::exchange(exec_watch_, 0));
    if (child_->exec_state() == ExecState::kFailed) handlers_.on_not_executed(child_->failure());
  });
  const auto watched =
      watch_.watch(child_->pid(), child_->pidfd(), [this](const ExitStatus& status) { exited(status); });
  MONARCH_ASSERT(exec_watch.ok() && watched.ok());
  exec_watch_ = exec_watch.value();
  child_->open_gate();
  return child_->pid();
}

void GuardedProcess::signal(int number) {
  if (child_) (void)send_signal(child_->pidfd(), number);  // false once it has ended, which will be told
}

void GuardedProcess::watch_steps(int page) {
  auto seen = SeenSteps::map(page);
  if (seen.ok()) steps_ = std::move(seen).value();
}

std::optional<std::uint64_t> GuardedProcess::steps() const {
  return steps_ ? std::optional(steps_->read()) : std::nullopt;
}

void GuardedProcess::send(const Frame& frame, std::vector<UniqueFd> descriptors) {
  if (!connected()) return;
  const Status sent = channel_->send(frame, std::move(descriptors));
  if (sent.ok() || sent.error().code == ErrorCode::kGone) return;  // its end is told by its channel
  log_warn("killing the guarded process: ", sent.error().message);
  signal(SIGKILL);
}

void GuardedProcess::channel_closed(const Error& reason) {
  if (reason.code != ErrorCode::kGone) log_warn("the guarded process's channel: ", reason.message);
  channel_.reset();
  if (exit_) return tell_exit();
  handlers_.on_hang_up();
}

void GuardedProcess::exited(const ExitStatus& status) {
  exit_ = status;
  if (exec_watch_ != 0 && child_->exec_state() == ExecState::kFailed) handlers_.on_not_executed(child_->failure());
  loop_.forget(std::exchange(exec_watch_, 0));
  if (!channel_) return tell_exit();
  drain_timer_ = loop_.at(loop_.now() + kDrainDeadline, [this] { tell_exit(); });
}

void GuardedProcess::tell_exit() {
  loop_.cancel(drain_timer_);
  channel_.reset();
  steps_.reset();
  watch_.reap(child_->pid());
  child_.reset();
  const ExitStatus status = *std::exchange(exit_, std::nullopt);
  handlers_.on_exit(status);
}

}  // namespace monarch
