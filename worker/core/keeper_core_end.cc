// KeeperCore: how a keeper ends: told to by what it guards, by a signal, or without what it guards.

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "transport/base/exit_code.h"
#include "transport/base/limits.h"
#include "worker/core/keeper_core.h"

namespace monarch {

namespace {

namespace event = keeper_event;
namespace action = keeper_action;

// In which a supervisor that was away may renew a lease, also where the host's end is near.
constexpr Duration kHeldBeforeItsEnd = Duration::seconds(5);

std::int32_t exit_code_of(const RankEnd& end) {
  switch (end.kind) {
    case EndKind::kExited:
    case EndKind::kSetupFailed: return end.value;
    case EndKind::kSignaled: return kExitSignalBase + end.value;
    case EndKind::kNotExecuted: return end.value == ENOENT ? kExitNotFound : kExitNotExecutable;
    case EndKind::kNone: return kExitInternal;
  }
  return kExitInternal;
}

}  // namespace

void KeeperCore::guarded_ended(const RankEnd& end, Instant now, KeeperActions& actions) {
  // While ending there is nothing to start it again for.
  if (exit_code_) guarded_.let_go(Duration::zero(), now);
  switch (guarded_.ended(end, now)) {
    case GuardedState::Outcome::kNeverReady:
    case GuardedState::Outcome::kFinal: exit_code_ = exit_code_of(end); break;
    case GuardedState::Outcome::kGaveUp: exit_code_ = kExitInternal; break;
    case GuardedState::Outcome::kRestarts:
      // It had not come to reading signals: the word was for the job, which has nobody else to hear it. One that was
      // stopping the job and died otherwise has a successor, who goes on with that.
      if (std::exchange(term_passed_on_, false) && end.kind == EndKind::kSignaled && end.value == SIGTERM) {
        on(event::Terminated{SIGTERM}, now, actions);
        if (incarnations_.empty()) guarded_.let_go(Duration::zero(), now);  // there is nothing to be ended for the job
      }
      return;
    case GuardedState::Outcome::kNone:
    case GuardedState::Outcome::kLeft: return;
  }
  kill_all(now, actions);
}

void KeeperCore::on(const KeeperLetLive& order, Instant /*now*/, KeeperActions& /*actions*/) {
  IncarnationState* incarnation = find(order.process);
  if (incarnation != nullptr && !incarnation->options().gated) incarnation->let_live(true);
}

void KeeperCore::on(const KeeperShutdown& order, Instant now, KeeperActions& actions) {
  // The job is over: nothing of it is worth more than this keeper.
  for (auto& [key, incarnation] : incarnations_) incarnation.let_live(false);
  // A guard that was told to end between two supervisors ends as the job did, not by its signal: whoever waits asks for
  // that.
  if (!exit_code_ || options_.kind == KeeperKind::kGuard) exit_code_ = order.exit_code;
  for (auto& [key, incarnation] : incarnations_) {
    if (incarnation.options().gated) {
      incarnation.stop({SIGKILL, Duration::zero()}, now, actions);
    } else if (options_.kind == KeeperKind::kGuard) {
      incarnation.await_end(limits::kKillDeadline, now, actions);
    }
  }
  guarded_.let_go(limits::kKillDeadline, now);
}

void KeeperCore::on(const event::Terminated& event, Instant now, KeeperActions& actions) {
  if (options_.kind == KeeperKind::kGuard && !exit_code_ && guarded_.has_process()) {
    term_passed_on_ = event.signal == SIGTERM;
    actions.emplace_back(action::SignalGuarded{event.signal});
    return;
  }
  if (options_.term_foretells && event.signal == SIGTERM) {
    actions.emplace_back(action::TellWarned{++warnings_});
    foretold_until_ = now + limits::kForetold;
    return;
  }
  if (exit_code_) return kill_all(now, actions);  // asked twice
  exit_code_ = kExitSignalBase + event.signal;
  for (auto& [key, incarnation] : incarnations_) {
    if (incarnation.lives_on()) continue;
    if (incarnation.options().gated || options_.kind == KeeperKind::kGuard)
      incarnation.stop_as_configured(now, actions);
  }
}

// What serves a worker's ranks is there until the last of them has ended, which may take their grace.
void KeeperCore::stop_servants(Instant now, KeeperActions& actions) {
  if (options_.kind != KeeperKind::kWorker) return;
  const bool served = std::any_of(incarnations_.begin(), incarnations_.end(), [](const auto& incarnation) {
    return incarnation.second.options().gated && !incarnation.second.settled();
  });
  if (served) return;
  for (auto& [key, incarnation] : incarnations_) {
    if (!incarnation.options().gated && incarnation.report().phase < RankPhase::kStopping) {
      incarnation.stop({SIGKILL, Duration::zero()}, now, actions);
    }
  }
}

void KeeperCore::kill_all(Instant now, KeeperActions& actions) {
  for (auto& [key, incarnation] : incarnations_) {
    if (!incarnation.lives_on()) incarnation.stop({SIGKILL, Duration::zero()}, now, actions);
  }
}

void KeeperCore::end_held(Instant now, KeeperActions& actions) {
  for (auto& [key, incarnation] : incarnations_) {
    if (held_until(incarnation) <= now) incarnation.stop({SIGKILL, Duration::zero()}, now, actions);
  }
}

// As long as no end was foretold, its lease says when.
Instant KeeperCore::held_until(const IncarnationState& incarnation) const {
  const Instant until = incarnation.held_since() + kHeldBeforeItsEnd;
  return until < foretold_until_ ? until : Instant::never();
}

void KeeperCore::tell_ended(KeeperActions& actions) {
  if (options_.kind != KeeperKind::kWorker || !guarded_.has_process() || std::exchange(end_told_, true)) return;
  action::TellEnded ended;
  for (const auto& [key, incarnation] : incarnations_) ended.wedged += incarnation.ended() ? 0U : 1U;
  actions.emplace_back(ended);
}

void KeeperCore::finish(Instant now, KeeperActions& actions) {
  if (!exit_code_) return;
  stop_servants(now, actions);
  const auto done_with = [](const auto& incarnation) {
    return incarnation.second.settled() || incarnation.second.lives_on();
  };
  if (!std::all_of(incarnations_.begin(), incarnations_.end(), done_with)) return;
  if (!guarded_.gone()) {
    tell_ended(actions);
    if (guarded_.phase() == GuardedPhase::kLeaving) return;
    // It heard of every end before this, and has this long to put it in order.
    if (guarded_.has_process()) actions.emplace_back(action::SignalGuarded{SIGTERM});
    guarded_.let_go(limits::kKillDeadline, now);
    if (!guarded_.gone()) return;
  }
  exited_ = true;
  action::KillDescendants rest{options_.kind == KeeperKind::kGuard ? limits::kKillDeadline : Duration::zero(), {}};
  for (const auto& [key, incarnation] : incarnations_) {
    if (incarnation.lives_on()) rest.spared.push_back(incarnation.pid());
  }
  actions.emplace_back(std::move(rest));
  actions.emplace_back(action::Exit{*exit_code_});
}

}  // namespace monarch
