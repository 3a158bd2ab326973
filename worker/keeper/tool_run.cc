#include "worker/keeper/tool_run.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "transport/process/pipe.h"
#include "transport/process/process_scan.h"

namespace monarch {

namespace {

constexpr std::size_t kErrorBytes = 4'096;
constexpr int kReadsPerTurn = 16;

}  // namespace

Result<std::unique_ptr<ToolRun>> ToolRun::start(EventLoop& loop, ChildWatch& watch, ToolOrder order,
                                                Handlers handlers) {
  std::unique_ptr<ToolRun> run(new ToolRun(loop, watch, std::move(handlers)));
  MONARCH_TRY(run->begin(std::move(order)));
  return run;
}

Status ToolRun::begin(ToolOrder order) {
  MONARCH_ASSIGN(auto output, make_pipe(PipeReader::kDoesNotWait));
  MONARCH_ASSIGN(auto error, make_pipe(PipeReader::kDoesNotWait));
  SpawnOptions options;
  options.program = std::move(order.program);
  options.environment = std::move(order.environment);
  options.workdir = "/";
  options.descriptors = {{output.writer.get(), STDOUT_FILENO}, {error.writer.get(), STDERR_FILENO}};
  auto forked = Child::fork(options);
  if (const auto* failure = std::get_if<StepFailure>(&forked)) return errno_error(failure->detail, failure->error);
  child_ = std::move(std::get<std::unique_ptr<Child>>(forked));
  output_ = {.fd = std::move(output.reader), .watch = 0, .kept = {}, .limit = order.output_bytes, .cut = false};
  error_ = {.fd = std::move(error.reader), .watch = 0, .kept = {}, .limit = kErrorBytes, .cut = false};
  MONARCH_TRY(listen(output_));
  MONARCH_TRY(listen(error_));
  MONARCH_TRY(watch_.watch(child_->pid(), child_->pidfd(), [this](const ExitStatus& status) { on_exit(status); }));
  timer_ = loop_.at(order.deadline, [this] {
    timer_ = 0;
    kill();
  });
  child_->open_gate();
  return {};
}

Status ToolRun::listen(Pipe& pipe) {
  MONARCH_ASSIGN(pipe.watch, loop_.watch(pipe.fd.get(), Interest::kRead, [this, &pipe](Readiness) { drain(pipe); }));
  return {};
}

// A turn of it is bounded: what writes without end has its turn again, and its deadline.
void ToolRun::drain(Pipe& pipe) {
  if (!pipe.fd.valid()) return;
  std::array<char, 16'384> piece{};
  for (int i = 0; i < kReadsPerTurn; ++i) {
    const ssize_t got = ::read(pipe.fd.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return close(pipe);
    const std::size_t room = pipe.limit - pipe.kept.size();
    const auto size = static_cast<std::size_t>(got);
    pipe.kept.append(piece.data(), std::min(room, size));
    pipe.cut = pipe.cut || size > room;
  }
}

void ToolRun::close(Pipe& pipe) {
  loop_.forget(std::exchange(pipe.watch, 0));
  pipe.fd.reset();
}

// False from either: it ends by itself right now, or leads no group yet.
void ToolRun::kill_now() {
  if (!child_) return;
  (void)send_signal(child_->pidfd(), SIGKILL);
  (void)send_group_signal(child_->pidfd(), child_->pid(), SIGKILL);
}

bool ToolRun::is(pid_t pid) const {
  const auto process = child_ ? read_process(pid) : std::nullopt;
  return process && process->session == child_->pid();
}

void ToolRun::kill() {
  kill_now();
  end({.how = ToolEnd::How::kTimedOut});
}

void ToolRun::on_exit(const ExitStatus& status) {
  drain(output_);
  drain(error_);
  ToolEnd told{.how = ToolEnd::How::kEnded, .status = status};
  if (child_->exec_state() == ExecState::kFailed) {
    told.how = ToolEnd::How::kNotExecuted;
    told.failure = child_->failure();
  }
  // What it started may still hold what it looked at, and would outlive every limit. False: there is none.
  (void)send_group_signal(child_->pidfd(), child_->pid(), SIGKILL);
  watch_.reap(child_->pid());
  child_.reset();
  end(std::move(told));
  handlers_.on_gone();
}

void ToolRun::end(ToolEnd told) {
  if (std::exchange(ended_, true)) return;
  loop_.cancel(std::exchange(timer_, 0));
  close(output_);
  close(error_);
  told.output = std::move(output_.kept);
  told.error = std::move(error_.kept);
  told.cut = output_.cut;
  handlers_.on_end(std::move(told));
}

ToolRun::~ToolRun() {
  loop_.cancel(timer_);
  close(output_);
  close(error_);
  if (!child_) return;
  kill_now();
  watch_.reap(child_->pid());  // alive still: reaped with those whom nobody watches
}

}  // namespace monarch
