#include "worker/core/slot_state.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "transport/base/assert.h"
#include "worker/core/notify.h"

namespace monarch {

namespace {

using keeper_action::CheckTree;
using keeper_action::FreezeTree;
using keeper_action::KillRank;
using keeper_action::KillTree;
using keeper_action::OpenGate;
using keeper_action::Reap;
using keeper_action::Report;
using keeper_action::SignalRank;
using keeper_action::ThawTree;

// Of looking again whether a tree is empty. The kernel tells us of children, but not of theirs.
constexpr Duration kFirstCheckPeriod = Duration::milliseconds(5);
constexpr Duration kLastCheckPeriod = Duration::milliseconds(100);
// What a shell waited for, after SIGKILL.
constexpr Duration kDiesWithin = Duration::seconds(1);

RankPhase outward(SlotPhase phase, bool executed) {
  switch (phase) {
    case SlotPhase::kForking:
    case SlotPhase::kGated:
    case SlotPhase::kStarting: return RankPhase::kGated;
    case SlotPhase::kRunning: return RankPhase::kRunning;
    case SlotPhase::kHeld: return executed ? RankPhase::kRunning : RankPhase::kGated;
    case SlotPhase::kGrace:
    case SlotPhase::kKilling: return RankPhase::kStopping;
    case SlotPhase::kWedged: return RankPhase::kWedged;
    case SlotPhase::kEnded: return RankPhase::kEnded;
  }
  return RankPhase::kEnded;
}

}  // namespace

RankReport SlotState::report() const {
  RankReport report;
  report.process = options_.key;
  report.phase = outward(phase_, executed_);
  report.pid = pid_;
  report.held = phase_ == SlotPhase::kHeld;
  report.started_at = started_at_;
  report.ready = ready_;
  report.progress = progress_;
  report.talk_drops = talk_drops_;
  // One that is held stands still because we want it.
  const bool should_run =
      phase_ == SlotPhase::kStarting || phase_ == SlotPhase::kRunning || phase_ == SlotPhase::kGrace;
  if (should_run) report.standstill = standstill_;
  if (phase_ != SlotPhase::kEnded) report.commit = commit_;
  report.at_gate = at_gate_;
  if (leader_exited()) {
    report.ended_at = *ended_at_;
    report.end = end_;
  }
  return report;
}

void SlotState::enter(SlotPhase phase, KeeperActions& actions) {
  phase_ = phase;
  if (phase == SlotPhase::kRunning && options_.ready == ReadyKind::kExec) ready_ = true;
  actions.emplace_back(Report{report()});
}

void SlotState::kill(Instant now, KeeperActions& actions) {
  if (!leader_exited()) signalled_ = true;
  actions.emplace_back(KillTree{options_.key});
  deadline_ = now + options_.kill_deadline;
  enter(SlotPhase::kKilling, actions);
  if (leader_exited()) check_tree(now, actions);
}

void SlotState::kill_in_order(Instant now, KeeperActions& actions) {
  // What has had the rest of a grace, or is one process, needs no more.
  if (leader_exited() || !options_.gated) return kill(now, actions);
  signalled_ = true;
  actions.emplace_back(KillRank{options_.key});
  deadline_ = now + options_.kill_deadline;
  rest_killed_at_ = now + kLinger;
  enter(SlotPhase::kKilling, actions);
}

// What it left behind goes with it. Not reported yet: mostly there is nothing, and the end is one message.
void SlotState::wait_for_rest(Instant now, KeeperActions& actions) {
  if (phase_ == SlotPhase::kHeld || !options_.gated) {
    actions.emplace_back(KillTree{options_.key});
  } else {
    rest_killed_at_ = now + kLinger;
  }
  phase_ = SlotPhase::kKilling;
  deadline_ = now + options_.kill_deadline;
  check_tree(now, actions);
}

void SlotState::kill_rest(Instant now, KeeperActions& actions) {
  rest_killed_at_ = Instant::never();
  actions.emplace_back(KillTree{options_.key});
  if (!leader_exited()) return;
  check_period_ = kFirstCheckPeriod;  // it is soon over
  check_tree(now, actions);
}

void SlotState::check_tree(Instant now, KeeperActions& actions) {
  check_period_ = check_period_ == Duration::zero() ? kFirstCheckPeriod : std::min(check_period_ * 2, kLastCheckPeriod);
  next_check_ = now + check_period_;
  actions.emplace_back(CheckTree{options_.key});
}

void SlotState::enforce_lease(Instant now, KeeperActions& actions) {
  switch (phase_) {
    case SlotPhase::kGated:
      // Nobody ever leased it: the supervisor that ordered it is gone.
      if (now >= lease_.killed_at()) kill(now, actions);
      return;
    case SlotPhase::kStarting:
    case SlotPhase::kRunning:
      if (now < lease_.ends_at()) return;
      if (now >= lease_.killed_at()) return kill(now, actions);
      actions.emplace_back(FreezeTree{options_.key});
      return enter(SlotPhase::kHeld, actions);
    case SlotPhase::kHeld:
      if (now >= lease_.killed_at()) kill(now, actions);
      return;
    case SlotPhase::kGrace:
      // Its replacement may start without a word from here: the rest of the grace is gone (I1).
      if (now >= lease_.ends_at()) kill(now, actions);
      return;
    case SlotPhase::kKilling:
      if (lingers() && now >= lease_.ends_at()) kill_rest(now, actions);
      return;
    case SlotPhase::kForking:  // it has no process yet
    case SlotPhase::kWedged:   // already all that can be done
    case SlotPhase::kEnded: return;
  }
}

void SlotState::tick(Instant now, KeeperActions& actions) {
  if (rest_killed_at_ <= now) kill_rest(now, actions);
  if (lease_low_at_ <= now) tell_lease_low(now, actions);
  if (next_check_ <= now) check_tree(now, actions);
  if (deadline_ > now) return;
  deadline_ = Instant::never();
  switch (phase_) {
    case SlotPhase::kGrace: return kill_in_order(now, actions);
    case SlotPhase::kKilling: return enter(SlotPhase::kWedged, actions);
    case SlotPhase::kForking:  // these set no deadline
    case SlotPhase::kGated:
    case SlotPhase::kStarting:
    case SlotPhase::kRunning:
    case SlotPhase::kHeld:
    case SlotPhase::kWedged:
    case SlotPhase::kEnded: return;
  }
}

Instant SlotState::next_due() const {
  const Instant due = std::min(deadline_, next_check_);
  switch (phase_) {
    case SlotPhase::kGated:
    case SlotPhase::kHeld: return std::min(due, lease_.killed_at());
    case SlotPhase::kStarting:
    case SlotPhase::kRunning: return std::min({due, lease_low_at_, lease_.ends_at()});
    case SlotPhase::kGrace: return std::min(due, lease_.ends_at());
    case SlotPhase::kKilling: return lingers() ? std::min({due, rest_killed_at_, lease_.ends_at()}) : due;
    case SlotPhase::kForking:
    case SlotPhase::kWedged:
    case SlotPhase::kEnded: return due;
  }
  return due;
}

void SlotState::extend_deadlines(Duration gap) {
  deadline_ = deadline_ + gap;
  rest_killed_at_ = rest_killed_at_ + gap;
  lease_.stall(gap);
}

void SlotState::lease(Instant until, Instant now, KeeperActions& actions) {
  switch (phase_) {
    case SlotPhase::kForking:
    case SlotPhase::kStarting:
    case SlotPhase::kRunning:
    case SlotPhase::kGrace:
      if (lease_.renew(until, now)) renewed(until, now);
      return;
    case SlotPhase::kGated:
      if (!lease_.renew(until, now)) return;
      renewed(until, now);
      phase_ = SlotPhase::kStarting;
      actions.emplace_back(OpenGate{options_.key});
      return;
    case SlotPhase::kHeld:
      if (!lease_.renew(until, now)) return;
      renewed(until, now);
      standstill_ = Standstill::kNone;  // what was seen of it meanwhile was our doing; what is left of it is told anew
      actions.emplace_back(ThawTree{options_.key});
      return enter(executed_ ? SlotPhase::kRunning : SlotPhase::kStarting, actions);
    case SlotPhase::kKilling:  // no lease brings it back
    case SlotPhase::kWedged:
    case SlotPhase::kEnded: return;
  }
}

void SlotState::stop(const StopOrder& order, Instant now, KeeperActions& actions) {
  const bool at_once = order.grace <= Duration::zero();
  SignalTo to = SignalTo::kGroup;
  switch (phase_) {
    case SlotPhase::kForking: stop_when_forked_ = true; return;
    case SlotPhase::kGated:                            // it has nothing to save
    case SlotPhase::kHeld: return kill(now, actions);  // thawing it would let it run without a lease (I1)
    case SlotPhase::kStarting:
    case SlotPhase::kRunning:
      if (at_once) return kill_in_order(now, actions);
      signalled_ = true;
      // Before the signal, and not where it was told by who ordered the stop.
      if (!told_stopping_) tell(stopping_event(order.signal, order.grace), actions);
      actions.emplace_back(SignalRank{options_.key, SIGCONT});
      // Before it is executed its own process is ours, and waits for the mesh's setup.
      to = phase_ == SlotPhase::kStarting ? SignalTo::kGroup : options_.signal_to;
      group_told_ = to == SignalTo::kGroup;
      actions.emplace_back(SignalRank{options_.key, order.signal, to});
      deadline_ = now + order.grace;
      return enter(SlotPhase::kGrace, actions);
    case SlotPhase::kGrace:
      // A repeated order changes nothing, an impatient one shortens the wait.
      if (at_once) return kill_in_order(now, actions);
      deadline_ = std::min(deadline_, now + order.grace);
      return;
    case SlotPhase::kKilling:  // already beyond what an order asks for
    case SlotPhase::kWedged:
    case SlotPhase::kEnded: return;
  }
}

void SlotState::await_end(Duration patience, Instant now, KeeperActions& actions) {
  switch (phase_) {
    case SlotPhase::kForking: stop_when_forked_ = true; return;
    case SlotPhase::kGated:
    case SlotPhase::kHeld: return kill(now, actions);
    case SlotPhase::kStarting:
    case SlotPhase::kRunning: deadline_ = now + patience; return enter(SlotPhase::kGrace, actions);
    case SlotPhase::kGrace: deadline_ = std::min(deadline_, now + patience); return;
    case SlotPhase::kKilling:
    case SlotPhase::kWedged:
    case SlotPhase::kEnded: return;
  }
}

void SlotState::signal(std::int32_t number, std::optional<SignalTo> to, KeeperActions& actions) const {
  switch (phase_) {
    case SlotPhase::kRunning:
    case SlotPhase::kGrace:
      actions.emplace_back(SignalRank{options_.key, number, to.value_or(options_.signal_to)});
      return;
    case SlotPhase::kForking:  // there is no program yet that could have asked for the signal
    case SlotPhase::kGated:
    case SlotPhase::kStarting:
    case SlotPhase::kHeld:  // a CONT would let it run without a lease (I1)
    case SlotPhase::kKilling:
    case SlotPhase::kWedged:
    case SlotPhase::kEnded: return;
  }
}

void SlotState::never_start(Instant now, KeeperActions& actions) {
  MONARCH_ASSERT_BECAUSE(phase_ == SlotPhase::kForking, "I4: one process per rank and generation");
  never_started_ = true;
  started_at_ = now;
  ended_at_ = now;
  end_.kind = EndKind::kNotExecuted;
  end_.value = ECANCELED;
  end_.detail = "stopped before it was started";
  end_.after_our_signal = true;
  enter(SlotPhase::kEnded, actions);
}

void SlotState::forked(std::int32_t pid, Instant now, KeeperActions& actions) {
  MONARCH_ASSERT_BECAUSE(phase_ == SlotPhase::kForking, "I4: one process per rank and generation");
  pid_ = pid;
  started_at_ = now;
  if (stop_when_forked_) return kill(now, actions);
  if (!options_.gated) {
    phase_ = SlotPhase::kStarting;
    return;
  }
  enter(SlotPhase::kGated, actions);
  if (!lease_.valid(now)) return;
  phase_ = SlotPhase::kStarting;
  actions.emplace_back(OpenGate{options_.key});
}

void SlotState::take_over(const SlotState& standby, Instant now, KeeperActions& actions) {
  MONARCH_ASSERT_BECAUSE(standby.waits_for_place(), "I4: one process per rank and generation");
  forked(standby.pid(), now, actions);
  started_at_ = standby.started_at();
}

void SlotState::at_gate(KeeperActions& actions) {
  if (std::exchange(at_gate_, true)) return;
  switch (phase_) {
    case SlotPhase::kStarting:  // it was executed, and its word overtook the kernel's
    case SlotPhase::kRunning:
    case SlotPhase::kHeld: actions.emplace_back(Report{report()}); return;
    case SlotPhase::kForking:  // there is no program yet
    case SlotPhase::kGated:
    case SlotPhase::kGrace:  // it is going
    case SlotPhase::kKilling:
    case SlotPhase::kWedged:
    case SlotPhase::kEnded: return;
  }
}

void SlotState::fork_failed(const keeper_event::ForkFailed& failure, Instant now, KeeperActions& actions) {
  MONARCH_ASSERT_BECAUSE(phase_ == SlotPhase::kForking, "I4: one process per rank and generation");
  started_at_ = now;
  ended_at_ = now;
  end_.kind = EndKind::kNotExecuted;
  end_.value = failure.error;
  end_.detail = failure.detail;
  end_.after_our_signal = stop_when_forked_;
  actions.emplace_back(Reap{options_.key});
  enter(SlotPhase::kEnded, actions);
}

void SlotState::executed(KeeperActions& actions) {
  // One that is held was executed before it was frozen, or has died: its exit tells.
  executed_ = true;
  switch (phase_) {
    case SlotPhase::kStarting: return enter(SlotPhase::kRunning, actions);
    case SlotPhase::kForking:  // a child that died at its gate looks the same; its exit tells
    case SlotPhase::kGated:
    case SlotPhase::kRunning:  // repeated
    case SlotPhase::kHeld:     // what it comes back to
    case SlotPhase::kGrace:    // the states that came in between say more
    case SlotPhase::kKilling:
    case SlotPhase::kWedged:
    case SlotPhase::kEnded: return;
  }
}

void SlotState::exec_failed(const keeper_event::ExecFailed& failure) {
  switch (phase_) {
    case SlotPhase::kGated:
    case SlotPhase::kStarting:
    case SlotPhase::kHeld:
    case SlotPhase::kGrace:
    case SlotPhase::kKilling:
      if (leader_exited()) return;  // the exit was told first and is the end on record
      end_.kind = failure.setup_code == 0 ? EndKind::kNotExecuted : EndKind::kSetupFailed;
      end_.value = failure.setup_code == 0 ? failure.error : failure.setup_code;
      end_.detail = failure.detail;
      end_.after_our_signal = signalled_;
      return;
    case SlotPhase::kForking:  // there is no child yet
    case SlotPhase::kRunning:  // executed already
    case SlotPhase::kWedged:
    case SlotPhase::kEnded: return;
  }
}

void SlotState::exited(const RankEnd& end, Instant now, KeeperActions& actions) {
  if (leader_exited()) return;  // told once is enough
  MONARCH_ASSERT(phase_ != SlotPhase::kForking && phase_ != SlotPhase::kEnded);
  ended_at_ = now;
  if (end_.kind == EndKind::kNone) {
    end_ = end;
    end_.after_our_signal = signalled_;
    // The kernel only counts what its OOM killer takes: after our own SIGKILL the count is about somebody else.
    if (phase_ == SlotPhase::kKilling || phase_ == SlotPhase::kWedged) end_.out_of_memory = false;
  }
  switch (phase_) {
    case SlotPhase::kGated:
    case SlotPhase::kStarting:
    case SlotPhase::kRunning:
    case SlotPhase::kHeld: return wait_for_rest(now, actions);
    case SlotPhase::kKilling:
      if (lingers()) rest_killed_at_ = now + kLinger;
      return check_tree(now, actions);
    case SlotPhase::kGrace:
      // Children that were told to end have the rest of the grace.
      return group_told_ || !options_.gated ? check_tree(now, actions) : wait_for_rest(now, actions);
    case SlotPhase::kWedged: return check_tree(now, actions);
    case SlotPhase::kForking:
    case SlotPhase::kEnded: return;
  }
}

void SlotState::tree_empty(KeeperActions& actions) {
  if (!leader_exited()) return;  // no answer to a question of ours
  switch (phase_) {
    case SlotPhase::kGrace:
    case SlotPhase::kKilling:
    case SlotPhase::kWedged:
      deadline_ = Instant::never();
      rest_killed_at_ = Instant::never();
      next_check_ = Instant::never();
      actions.emplace_back(Reap{options_.key});
      return enter(SlotPhase::kEnded, actions);
    case SlotPhase::kForking:  // the leader has not exited in these
    case SlotPhase::kGated:
    case SlotPhase::kStarting:
    case SlotPhase::kRunning:
    case SlotPhase::kHeld:
    case SlotPhase::kEnded: return;
  }
}

void SlotState::tree_busy(bool own, Instant now, KeeperActions& actions) {
  if (!leader_exited()) return;
  // A large one takes its time to die, and what it leaves has its moment from then; one that is stuck is not waited
  // for.
  if (own && lingers()) rest_killed_at_ = std::min(now + kLinger, deadline_ - options_.kill_deadline + kDiesWithin);
  const bool first = check_period_ == kFirstCheckPeriod;
  switch (phase_) {
    case SlotPhase::kGrace: break;
    case SlotPhase::kKilling:
    case SlotPhase::kWedged:
      // Something was forked while the others were killed.
      if (!lingers()) actions.emplace_back(KillTree{options_.key});
      break;
    case SlotPhase::kForking:
    case SlotPhase::kGated:
    case SlotPhase::kStarting:
    case SlotPhase::kRunning:
    case SlotPhase::kHeld:
    case SlotPhase::kEnded: return;
  }
  next_check_ = now + check_period_;
  if (first) actions.emplace_back(Report{report()});
}

}  // namespace monarch
