#include "worker/drill/strike.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "transport/base/clock.h"
#include "transport/process/job_marks.h"

namespace monarch {

namespace {

constexpr int kGuardTries = 20;
constexpr Duration kGuardPatience = Duration::milliseconds(200);

PlannedEffect plan_effect(const StrikeOrder& order) {
  switch (order.what) {
    case StrikeWhat::kKill:
    case StrikeWhat::kTerm:
    case StrikeWhat::kSegv:
    case StrikeWhat::kAbort:
    case StrikeWhat::kStop: return plan_signals(order);
    case StrikeWhat::kNoFiles:
    case StrikeWhat::kNoMemory: return plan_limits(order);
    case StrikeWhat::kBusy: return plan_busy(order);
    case StrikeWhat::kCut: return plan_cut(order);
    case StrikeWhat::kSlow: return plan_slow(order);
    case StrikeWhat::kFlood: return plan_flood(order);
    case StrikeWhat::kReset: return plan_reset(order);
    case StrikeWhat::kMemoryPressure: return plan_memory_pressure(order);
  }
  return Error{ErrorCode::kUnsupported, "this worker knows no such fault"};
}

}  // namespace

Result<std::unique_ptr<Strike>> Strike::begin(const StrikeOrder& order, Duration patience) {
  if (!is_job_uuid(order.job_uuid)) return Error{ErrorCode::kInvalid, "that is not the uuid of a job"};
  MONARCH_ASSIGN(auto effect, plan_effect(order));
  std::unique_ptr<Strike> strike(new Strike(std::move(effect)));
  if (strike->effect_->outlives_us()) MONARCH_TRY(strike->guard());
  MONARCH_TRY(strike->effect_->strike(patience, strike->seen_));
  strike->seen_.seen_at = wall_now();
  return strike;
}

Status Strike::let_go_on(const StrikeOrder& order, Duration patience) {
  if (!is_job_uuid(order.job_uuid)) return Error{ErrorCode::kInvalid, "that is not the uuid of a job"};
  if (order.what != StrikeWhat::kStop) {
    return Error{ErrorCode::kUnsupported, "only its own process knows how to take it back"};
  }
  auto effect = plan_effect(order);
  if (!effect.ok()) return effect.error().code == ErrorCode::kNotFound ? Status() : effect.error();
  return (*effect)->give_back(patience);
}

// A child that lives as long as this process, and then undoes what it did not.
Status Strike::guard() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("pipe2", errno);
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return errno_error("fork", errno);
  if (child > 0) {
    alive_ = std::move(write_end);
    guard_ = child;
    return {};
  }
  write_end.reset();
  (void)::setsid();  // what ends the session of its parent does not end it
  // Or whoever reads what this process says would wait for it.
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) (void)::dup2(null.get(), fd);
  char word = 0;
  ssize_t got = 0;
  while ((got = ::read(read_end.get(), &word, 1)) < 0 && errno == EINTR) {
  }
  if (got == 1) ::_exit(0);
  for (int tries = 0; tries < kGuardTries; ++tries) {
    if (effect_->give_back(kGuardPatience).ok()) break;
    (void)::poll(nullptr, 0, static_cast<int>(kGuardPatience.count_milliseconds()));
  }
  ::_exit(0);
}

Status Strike::undo(Duration patience) {
  if (!effect_) return {};
  seen_.felt = effect_->felt();
  const Status undone = effect_->give_back(patience);
  effect_.reset();
  if (guard_ > 0) {
    // It may have been killed, which is well now; where something could not be taken back, it tries that, too.
    if (undone.ok()) (void)!::write(alive_.get(), "x", 1);
    alive_.reset();
    (void)::waitpid(std::exchange(guard_, 0), nullptr, 0);
  }
  return undone;
}

}  // namespace monarch
