// KeeperCore: how a keeper ends: told to by what it guards, by a signal, or without what it guards.

#include <algorithm>
#include <cerrno>
#include <csignal>

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
    case GuardedState::Outcome::kNone:
    case GuardedState::Outcome::kRestarts:
    case GuardedState::Outcome::kLeft: return;
  }
  kill_all(now, actions);
}

void KeeperCore::on(const KeeperLetLive& order, Instant /*now*/, KeeperActions& /*actions*/) {
  SlotState* slot = find(order.process);
  if (slot != nullptr && !slot->options().gated) slot->let_live(true);
}

void KeeperCore::on(const KeeperShutdown& order, Instant now, KeeperActions& actions) {
  // The job is over: nothing of it is worth more than this keeper.
  for (auto& [key, slot] : slots_) slot.let_live(false);
  // A guard that was told to end between two supervisors ends as the job did, not by its signal: whoever waits asks for
  // that.
  if (!exit_code_ || options_.kind == KeeperKind::kGuard) exit_code_ = order.exit_code;
  for (auto& [key, slot] : slots_) {
    if (slot.options().gated) {
      slot.stop({SIGKILL, Duration::zero()}, now, actions);
    } else if (options_.kind == KeeperKind::kGuard) {
      slot.await_end(limits::kKillDeadline, now, actions);
    }
  }
  guarded_.let_go(limits::kKillDeadline, now);
}

void KeeperCore::on(const event::Terminated& event, Instant now, KeeperActions& actions) {
  if (options_.kind == KeeperKind::kGuard && !exit_code_ && guarded_.has_process()) {
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
  for (auto& [key, slot] : slots_) {
    if (slot.lives_on()) continue;
    if (slot.options().gated || options_.kind == KeeperKind::kGuard) slot.stop_as_configured(now, actions);
  }
}

// What serves a worker's ranks is there until the last of them has ended, which may take their grace.
void KeeperCore::stop_servants(Instant now, KeeperActions& actions) {
  if (options_.kind != KeeperKind::kWorker) return;
  const bool served = std::any_of(slots_.begin(), slots_.end(), [](const auto& slot) {
    return slot.second.options().gated && !slot.second.settled();
  });
  if (served) return;
  for (auto& [key, slot] : slots_) {
    if (!slot.options().gated && slot.report().phase < RankPhase::kStopping) {
      slot.stop({SIGKILL, Duration::zero()}, now, actions);
    }
  }
}

void KeeperCore::kill_all(Instant now, KeeperActions& actions) {
  for (auto& [key, slot] : slots_) {
    if (!slot.lives_on()) slot.stop({SIGKILL, Duration::zero()}, now, actions);
  }
}

void KeeperCore::end_held(Instant now, KeeperActions& actions) {
  for (auto& [key, slot] : slots_) {
    if (held_until(slot) <= now) slot.stop({SIGKILL, Duration::zero()}, now, actions);
  }
}

// As long as no end was foretold, its lease says when.
Instant KeeperCore::held_until(const SlotState& slot) const {
  const Instant until = slot.held_since() + kHeldBeforeItsEnd;
  return until < foretold_until_ ? until : Instant::never();
}

void KeeperCore::tell_ended(KeeperActions& actions) {
  if (options_.kind != KeeperKind::kWorker || !guarded_.has_process() || std::exchange(end_told_, true)) return;
  action::TellEnded ended;
  for (const auto& [key, slot] : slots_) ended.wedged += slot.ended() ? 0U : 1U;
  actions.emplace_back(ended);
}

void KeeperCore::finish(Instant now, KeeperActions& actions) {
  if (!exit_code_) return;
  stop_servants(now, actions);
  const auto done_with = [](const auto& slot) { return slot.second.settled() || slot.second.lives_on(); };
  if (!std::all_of(slots_.begin(), slots_.end(), done_with)) return;
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
  for (const auto& [key, slot] : slots_) {
    if (slot.lives_on()) rest.spared.push_back(slot.pid());
  }
  actions.emplace_back(std::move(rest));
  actions.emplace_back(action::Exit{*exit_code_});
}

}  // namespace monarch
