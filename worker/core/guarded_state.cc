#include "worker/core/guarded_state.h"

#include <algorithm>
#include <utility>

#include "transport/base/limits.h"

namespace monarch {

namespace {

using keeper_action::ForkGuarded;
using keeper_action::KillGuarded;
using keeper_action::Ping;

constexpr Duration kFirstWordDeadline = Duration::seconds(30);
constexpr Duration kHangUpDeadline = Duration::milliseconds(500);  // from its hang-up to its exit
constexpr Duration kFirstBackoff = Duration::milliseconds(500);
constexpr Duration kLastBackoff = Duration::seconds(30);

// After the first crash at once, then doubling.
Duration backoff(std::size_t crashes) {
  if (crashes <= 1) return Duration::zero();
  Duration wait = kFirstBackoff;
  for (std::size_t i = 2; i < crashes && wait < kLastBackoff; ++i) wait = wait * 2;
  return std::min(wait, kLastBackoff);
}

}  // namespace

bool GuardedState::has_process() const {
  switch (phase_) {
    case GuardedPhase::kSilent:
    case GuardedPhase::kAlive:
    case GuardedPhase::kKilled:
    case GuardedPhase::kLeaving: return true;
    case GuardedPhase::kWaiting:
    case GuardedPhase::kForking:
    case GuardedPhase::kGone: return false;
  }
  return false;
}

void GuardedState::tick(Instant now, KeeperActions& actions) {
  switch (phase_) {
    case GuardedPhase::kWaiting:
      if (now < start_at_) return;
      phase_ = GuardedPhase::kForking;
      actions.emplace_back(ForkGuarded{++starts_});
      return;
    case GuardedPhase::kSilent:
    case GuardedPhase::kAlive:
      if (now >= deadline_) {
        actions.emplace_back(KillGuarded{phase_ == GuardedPhase::kSilent ? "it never spoke" : "it does not answer"});
        phase_ = GuardedPhase::kKilled;
        return;
      }
      if (now < next_ping_) return;
      next_ping_ = now + limits::kPingPeriod;
      actions.emplace_back(Ping{++pings_});
      return;
    case GuardedPhase::kLeaving:
      if (now < deadline_) return;
      deadline_ = Instant::never();
      actions.emplace_back(KillGuarded{"it was to leave and has not"});
      return;
    case GuardedPhase::kForking:  // its outcome is on its way
    case GuardedPhase::kKilled:   // its exit is
    case GuardedPhase::kGone: return;
  }
}

Instant GuardedState::next_due() const {
  switch (phase_) {
    case GuardedPhase::kWaiting: return start_at_;
    case GuardedPhase::kSilent:
    case GuardedPhase::kAlive: return std::min(next_ping_, deadline_);
    case GuardedPhase::kLeaving: return deadline_;
    case GuardedPhase::kForking:
    case GuardedPhase::kKilled:
    case GuardedPhase::kGone: return Instant::never();
  }
  return Instant::never();
}

void GuardedState::extend_deadlines(Duration gap) { deadline_ = deadline_ + gap; }

void GuardedState::forked(Instant now) {
  if (phase_ != GuardedPhase::kForking) return;  // let go while it was being forked: kLeaving has its deadline
  phase_ = GuardedPhase::kSilent;
  steps_ = 0;
  deadline_ = now + kFirstWordDeadline;
  next_ping_ = now;
}

void GuardedState::spoke(Instant now) {
  ever_spoke_ = true;
  if (phase_ != GuardedPhase::kSilent) return;  // only its first word changes anything
  phase_ = GuardedPhase::kAlive;
  deadline_ = now + options_.ping_deadline;
}

void GuardedState::pong(Instant now) {
  spoke(now);
  if (phase_ == GuardedPhase::kAlive) deadline_ = now + options_.ping_deadline;
}

// What is busy answers late.
void GuardedState::stepped(std::uint64_t done, Instant now) {
  if (std::exchange(steps_, done) == done) return;
  if (phase_ == GuardedPhase::kAlive) deadline_ = now + options_.ping_deadline;
}

void GuardedState::hung_up(Instant now) {
  if (!listens()) return;
  deadline_ = std::min(deadline_, now + kHangUpDeadline);
  next_ping_ = Instant::never();  // nobody would hear it
}

GuardedState::Outcome GuardedState::ended(const RankEnd& end, Instant now) {
  deadline_ = Instant::never();
  next_ping_ = Instant::never();
  switch (phase_) {
    case GuardedPhase::kLeaving: phase_ = GuardedPhase::kGone; return Outcome::kLeft;
    case GuardedPhase::kForking:
    case GuardedPhase::kSilent:
    case GuardedPhase::kAlive:
    case GuardedPhase::kKilled: break;
    case GuardedPhase::kWaiting:  // it has no process
    case GuardedPhase::kGone: return Outcome::kNone;
  }
  if (!ever_spoke_) {
    phase_ = GuardedPhase::kGone;
    return Outcome::kNeverReady;
  }
  const auto& final_codes = options_.final_codes;
  if (end.kind == EndKind::kExited &&
      std::find(final_codes.begin(), final_codes.end(), end.value) != final_codes.end()) {
    phase_ = GuardedPhase::kGone;
    return Outcome::kFinal;
  }
  while (!crashes_.empty() && now - crashes_.front() > options_.window) crashes_.pop_front();
  crashes_.push_back(now);
  if (crashes_.size() > options_.restarts) {
    phase_ = GuardedPhase::kGone;
    return Outcome::kGaveUp;
  }
  phase_ = GuardedPhase::kWaiting;
  start_at_ = now + backoff(crashes_.size());
  return Outcome::kRestarts;
}

void GuardedState::let_go(Duration patience, Instant now) {
  switch (phase_) {
    case GuardedPhase::kWaiting: phase_ = GuardedPhase::kGone; return;
    case GuardedPhase::kForking:
    case GuardedPhase::kSilent:
    case GuardedPhase::kAlive:
    case GuardedPhase::kKilled:
      phase_ = GuardedPhase::kLeaving;
      deadline_ = now + patience;
      return;
    case GuardedPhase::kLeaving: deadline_ = std::min(deadline_, now + patience); return;
    case GuardedPhase::kGone: return;
  }
}

}  // namespace monarch
