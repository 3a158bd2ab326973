#include "cli/follow/signal_policy.h"

#include <csignal>

#include "transport/base/exit_code.h"

namespace monarch {

std::initializer_list<int> SignalPolicy::signals(ViewerKind kind) {
  static constexpr std::initializer_list<int> kOwner = {SIGINT,  SIGTERM, SIGHUP,  SIGUSR1,
                                                        SIGUSR2, SIGQUIT, SIGCONT, SIGWINCH};
  static constexpr std::initializer_list<int> kWatcher = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
  return kind == ViewerKind::kOwner ? kOwner : kWatcher;
}

SignalAnswer SignalPolicy::on_signal(int number) {
  switch (number) {
    case SIGINT: return on_interrupt();
    case SIGTERM: return on_terminate(kExitStopped);
    case SIGHUP: return on_terminate(kExitHangup);
    case SIGUSR1:
    case SIGUSR2:
    case SIGQUIT:
    case SIGCONT:
      if (kind_ == ViewerKind::kOwner) return {.action = SignalAction::kForward};
      return {};         // ignored, because a watcher is not the ranks' terminal
    default: return {};  // ignored, because SIGWINCH and the like mean nothing to a job
  }
}

SignalAnswer SignalPolicy::on_interrupt() {
  if (kind_ == ViewerKind::kWatcher) return {.action = SignalAction::kDetach, .exit_code = kExitInterrupted};
  switch (stage_) {
    case Stage::kRunning:
      stage_ = Stage::kStopping;
      return {.action = SignalAction::kStop, .exit_code = kExitInterrupted, .interrupted = true};
    case Stage::kStopping: stage_ = Stage::kKilling; return {.action = SignalAction::kKill, .interrupted = true};
    case Stage::kKilling: return {.action = SignalAction::kLeave, .exit_code = kExitInterrupted};
  }
  return {};
}

SignalAnswer SignalPolicy::on_terminate(int exit_code) {
  if (kind_ == ViewerKind::kWatcher) return {.action = SignalAction::kDetach, .exit_code = exit_code};
  if (stage_ != Stage::kRunning) return {};  // ignored, because the stop it asks for is on its way
  stage_ = Stage::kStopping;
  return {.action = SignalAction::kStop, .exit_code = exit_code};
}

}  // namespace monarch
