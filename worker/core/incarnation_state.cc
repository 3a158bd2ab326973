#include "worker/core/incarnation_state.h"

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

RankPhase outward(IncarnationPhase phase, bool executed) {
  switch (phase) {
    case IncarnationPhase::kForking:
    case IncarnationPhase::kGated:
    case IncarnationPhase::kStarting: return RankPhase::kGated;
    case IncarnationPhase::kRunning: return RankPhase::kRunning;
    case IncarnationPhase::kHeld: return executed ? RankPhase::kRunning : RankPhase::kGated;
    case IncarnationPhase::kGrace:
    case IncarnationPhase::kKilling: return RankPhase::kStopping;
    case IncarnationPhase::kWedged: return RankPhase::kWedged;
    case IncarnationPhase::kEnded: return RankPhase::kEnded;
  }
  return RankPhase::kEnded;
}

}  // namespace

RankReport IncarnationState::report() const {
  RankReport report;
  report.process = options_.key;
  report.phase = outward(phase_, executed_);
  report.pid = pid_;
  report.held = phase_ == IncarnationPhase::kHeld;
  report.started_at = started_at_;
  report.ready = ready_;
  report.progress = progress_;
  report.talk_drops = talk_drops_;
  // One that is held stands still because we want it.
  const bool should_run = phase_ == IncarnationPhase::kStarting || phase_ == IncarnationPhase::kRunning ||
                          phase_ == IncarnationPhase::kGrace;
  if (should_run) report.standstill = standstill_;
  if (phase_ != IncarnationPhase::kEnded) report.commit = commit_;
  report.at_gate = at_gate_;
  report.ending = ending_at_ && !leader_exited();
  if (const auto ended_at = ending_at_ ? ending_at_ : ended_at_) report.ended_at = *ended_at;
  if (leader_exited()) report.end = end_;
  return report;
}

void IncarnationState::enter(IncarnationPhase phase, KeeperActions& actions) {
  phase_ = phase;
  if (phase == IncarnationPhase::kRunning && options_.ready == ReadyKind::kExec) ready_ = true;
  actions.emplace_back(Report{report()});
}

void IncarnationState::kill(Instant now, KeeperActions& actions) {
  if (!leader_exited()) signalled_ = true;
  actions.emplace_back(KillTree{options_.key});
  deadline_ = now + options_.kill_deadline;
  enter(IncarnationPhase::kKilling, actions);
  if (leader_exited()) check_tree(now, actions);
}

void IncarnationState::kill_in_order(Instant now, KeeperActions& actions) {
  // What has had the rest of a grace, or is one process, needs no more.
  if (leader_exited() || !options_.gated) return kill(now, actions);
  signalled_ = true;
  actions.emplace_back(KillRank{options_.key});
  deadline_ = now + options_.kill_deadline;
  rest_killed_at_ = now + kLinger;
  enter(IncarnationPhase::kKilling, actions);
}

// What it left behind goes with it. Not reported yet: mostly there is nothing, and the end is one message.
void IncarnationState::wait_for_rest(Instant now, KeeperActions& actions) {
  if (phase_ == IncarnationPhase::kHeld || !options_.gated) {
    actions.emplace_back(KillTree{options_.key});
  } else {
    rest_killed_at_ = now + kLinger;
  }
  phase_ = IncarnationPhase::kKilling;
  deadline_ = now + options_.kill_deadline;
  check_tree(now, actions);
}

void IncarnationState::kill_rest(Instant now, KeeperActions& actions) {
  rest_killed_at_ = Instant::never();
  actions.emplace_back(KillTree{options_.key});
  if (!leader_exited()) return;
  check_period_ = kFirstCheckPeriod;  // it is soon over
  check_tree(now, actions);
}

void IncarnationState::check_tree(Instant now, KeeperActions& actions) {
  check_period_ = check_period_ == Duration::zero() ? kFirstCheckPeriod : std::min(check_period_ * 2, kLastCheckPeriod);
  next_check_ = now + check_period_;
  actions.emplace_back(CheckTree{options_.key});
}

void IncarnationState::enforce_lease(Instant now, KeeperActions& actions) {
  switch (phase_) {
    case IncarnationPhase::kGated:
      // Nobody ever leased it: the supervisor that ordered it is gone.
      if (now >= lease_.killed_at()) kill(now, actions);
      return;
    case IncarnationPhase::kStarting:
    case IncarnationPhase::kRunning:
      if (now < lease_.ends_at()) return;
      if (now >= lease_.killed_at()) return kill(now, actions);
      actions.emplace_back(FreezeTree{options_.key});
      return enter(IncarnationPhase::kHeld, actions);
    case IncarnationPhase::kHeld:
      if (now >= lease_.killed_at()) kill(now, actions);
      return;
    case IncarnationPhase::kGrace:
      // Its replacement may start without a word from here: the rest of the grace is gone (I1).
      if (now >= lease_.ends_at()) kill(now, actions);
      return;
    case IncarnationPhase::kKilling:
      if (lingers() && now >= lease_.ends_at()) kill_rest(now, actions);
      return;
    case IncarnationPhase::kForking:  // it has no process yet
    case IncarnationPhase::kWedged:   // already all that can be done
    case IncarnationPhase::kEnded: return;
  }
}

void IncarnationState::tick(Instant now, KeeperActions& actions) {
  if (rest_killed_at_ <= now) kill_rest(now, actions);
  if (lease_low_at_ <= now) tell_lease_low(now, actions);
  if (next_check_ <= now) check_tree(now, actions);
  if (deadline_ > now) return;
  deadline_ = Instant::never();
  switch (phase_) {
    case IncarnationPhase::kGrace: return kill_in_order(now, actions);
    case IncarnationPhase::kKilling: return enter(IncarnationPhase::kWedged, actions);
    case IncarnationPhase::kForking:  // these set no deadline
    case IncarnationPhase::kGated:
    case IncarnationPhase::kStarting:
    case IncarnationPhase::kRunning:
    case IncarnationPhase::kHeld:
    case IncarnationPhase::kWedged:
    case IncarnationPhase::kEnded: return;
  }
}

Instant IncarnationState::next_due() const {
  const Instant due = std::min(deadline_, next_check_);
  switch (phase_) {
    case IncarnationPhase::kGated:
    case IncarnationPhase::kHeld: return std::min(due, lease_.killed_at());
    case IncarnationPhase::kStarting:
    case IncarnationPhase::kRunning: return std::min({due, lease_low_at_, lease_.ends_at()});
    case IncarnationPhase::kGrace: return std::min(due, lease_.ends_at());
    case IncarnationPhase::kKilling: return lingers() ? std::min({due, rest_killed_at_, lease_.ends_at()}) : due;
    case IncarnationPhase::kForking:
    case IncarnationPhase::kWedged:
    case IncarnationPhase::kEnded: return due;
  }
  return due;
}

void IncarnationState::extend_deadlines(Duration gap) {
  deadline_ = deadline_ + gap;
  rest_killed_at_ = rest_killed_at_ + gap;
  lease_.stall(gap);
}

void IncarnationState::lease(Instant until, Instant now, KeeperActions& actions) {
  switch (phase_) {
    case IncarnationPhase::kForking:
    case IncarnationPhase::kStarting:
    case IncarnationPhase::kRunning:
    case IncarnationPhase::kGrace:
      if (lease_.renew(until, now)) renewed(until, now);
      return;
    case IncarnationPhase::kGated:
      if (!lease_.renew(until, now)) return;
      renewed(until, now);
      phase_ = IncarnationPhase::kStarting;
      actions.emplace_back(OpenGate{options_.key});
      return;
    case IncarnationPhase::kHeld:
      if (!lease_.renew(until, now)) return;
      renewed(until, now);
      standstill_ = Standstill::kNone;  // what was seen of it meanwhile was our doing; what is left of it is told anew
      actions.emplace_back(ThawTree{options_.key});
      return enter(executed_ ? IncarnationPhase::kRunning : IncarnationPhase::kStarting, actions);
    case IncarnationPhase::kKilling:  // no lease brings it back
    case IncarnationPhase::kWedged:
    case IncarnationPhase::kEnded: return;
  }
}

void IncarnationState::stop(const StopOrder& order, Instant now, KeeperActions& actions) {
  const bool at_once = order.grace <= Duration::zero();
  SignalTo to = SignalTo::kGroup;
  switch (phase_) {
    case IncarnationPhase::kForking: stop_when_forked_ = true; return;
    case IncarnationPhase::kGated:                            // it has nothing to save
    case IncarnationPhase::kHeld: return kill(now, actions);  // thawing it would let it run without a lease (I1)
    case IncarnationPhase::kStarting:
    case IncarnationPhase::kRunning:
      if (at_once) return kill_in_order(now, actions);
      signalled_ = true;
      // Before the signal, and not where it was told by who ordered the stop.
      if (!told_stopping_) tell(stopping_event(order.signal, order.grace), actions);
      actions.emplace_back(SignalRank{options_.key, SIGCONT});
      // Before it is executed its own process is ours, and waits for the mesh's setup.
      to = phase_ == IncarnationPhase::kStarting ? SignalTo::kGroup : options_.signal_to;
      group_told_ = to == SignalTo::kGroup;
      actions.emplace_back(SignalRank{options_.key, order.signal, to});
      deadline_ = now + order.grace;
      return enter(IncarnationPhase::kGrace, actions);
    case IncarnationPhase::kGrace:
      // A repeated order changes nothing, an impatient one shortens the wait.
      if (at_once) return kill_in_order(now, actions);
      deadline_ = std::min(deadline_, now + order.grace);
      return;
    case IncarnationPhase::kKilling:  // already beyond what an order asks for
    case IncarnationPhase::kWedged:
    case IncarnationPhase::kEnded: return;
  }
}

void IncarnationState::await_end(Duration patience, Instant now, KeeperActions& actions) {
  switch (phase_) {
    case IncarnationPhase::kForking: stop_when_forked_ = true; return;
    case IncarnationPhase::kGated:
    case IncarnationPhase::kHeld: return kill(now, actions);
    case IncarnationPhase::kStarting:
    case IncarnationPhase::kRunning: deadline_ = now + patience; return enter(IncarnationPhase::kGrace, actions);
    case IncarnationPhase::kGrace: deadline_ = std::min(deadline_, now + patience); return;
    case IncarnationPhase::kKilling:
    case IncarnationPhase::kWedged:
    case IncarnationPhase::kEnded: return;
  }
}

void IncarnationState::signal(std::int32_t number, std::optional<SignalTo> to, KeeperActions& actions) const {
  switch (phase_) {
    case IncarnationPhase::kRunning:
    case IncarnationPhase::kGrace:
      actions.emplace_back(SignalRank{options_.key, number, to.value_or(options_.signal_to)});
      return;
    case IncarnationPhase::kForking:  // there is no program yet that could have asked for the signal
    case IncarnationPhase::kGated:
    case IncarnationPhase::kStarting:
    case IncarnationPhase::kHeld:  // a CONT would let it run without a lease (I1)
    case IncarnationPhase::kKilling:
    case IncarnationPhase::kWedged:
    case IncarnationPhase::kEnded: return;
  }
}

void IncarnationState::never_start(Instant now, KeeperActions& actions) {
  MONARCH_ASSERT_BECAUSE(phase_ == IncarnationPhase::kForking, "I4: one process per rank and generation");
  never_started_ = true;
  started_at_ = now;
  ended_at_ = now;
  end_.kind = EndKind::kNotExecuted;
  end_.value = ECANCELED;
  end_.detail = "stopped before it was started";
  end_.after_our_signal = true;
  enter(IncarnationPhase::kEnded, actions);
}

void IncarnationState::forked(std::int32_t pid, Instant now, KeeperActions& actions) {
  MONARCH_ASSERT_BECAUSE(phase_ == IncarnationPhase::kForking, "I4: one process per rank and generation");
  pid_ = pid;
  started_at_ = now;
  if (stop_when_forked_) return kill(now, actions);
  if (!options_.gated) {
    phase_ = IncarnationPhase::kStarting;
    return;
  }
  enter(IncarnationPhase::kGated, actions);
  if (!lease_.valid(now)) return;
  phase_ = IncarnationPhase::kStarting;
  actions.emplace_back(OpenGate{options_.key});
}

void IncarnationState::take_over(const IncarnationState& standby, Instant now, KeeperActions& actions) {
  MONARCH_ASSERT_BECAUSE(standby.waits_for_place(), "I4: one process per rank and generation");
  forked(standby.pid(), now, actions);
  started_at_ = standby.started_at();
}

void IncarnationState::at_gate(KeeperActions& actions) {
  if (std::exchange(at_gate_, true)) return;
  switch (phase_) {
    case IncarnationPhase::kStarting:  // it was executed, and its word overtook the kernel's
    case IncarnationPhase::kRunning:
    case IncarnationPhase::kHeld: actions.emplace_back(Report{report()}); return;
    case IncarnationPhase::kForking:  // there is no program yet
    case IncarnationPhase::kGated:
    case IncarnationPhase::kGrace:  // it is going
    case IncarnationPhase::kKilling:
    case IncarnationPhase::kWedged:
    case IncarnationPhase::kEnded: return;
  }
}

void IncarnationState::fork_failed(const keeper_event::ForkFailed& failure, Instant now, KeeperActions& actions) {
  MONARCH_ASSERT_BECAUSE(phase_ == IncarnationPhase::kForking, "I4: one process per rank and generation");
  started_at_ = now;
  ended_at_ = now;
  end_.kind = EndKind::kNotExecuted;
  end_.value = failure.error;
  end_.detail = failure.detail;
  end_.after_our_signal = stop_when_forked_;
  actions.emplace_back(Reap{options_.key});
  enter(IncarnationPhase::kEnded, actions);
}

void IncarnationState::executed(KeeperActions& actions) {
  // One that is held was executed before it was frozen, or has died: its exit tells.
  executed_ = true;
  switch (phase_) {
    case IncarnationPhase::kStarting: return enter(IncarnationPhase::kRunning, actions);
    case IncarnationPhase::kForking:  // a child that died at its gate looks the same; its exit tells
    case IncarnationPhase::kGated:
    case IncarnationPhase::kRunning:  // repeated
    case IncarnationPhase::kHeld:     // what it comes back to
    case IncarnationPhase::kGrace:    // the states that came in between say more
    case IncarnationPhase::kKilling:
    case IncarnationPhase::kWedged:
    case IncarnationPhase::kEnded: return;
  }
}

void IncarnationState::exec_failed(const keeper_event::ExecFailed& failure) {
  switch (phase_) {
    case IncarnationPhase::kGated:
    case IncarnationPhase::kStarting:
    case IncarnationPhase::kHeld:
    case IncarnationPhase::kGrace:
    case IncarnationPhase::kKilling:
      if (leader_exited()) return;  // the exit was told first and is the end on record
      end_.kind = failure.setup_code == 0 ? EndKind::kNotExecuted : EndKind::kSetupFailed;
      end_.value = failure.setup_code == 0 ? failure.error : failure.setup_code;
      end_.detail = failure.detail;
      end_.after_our_signal = signalled_;
      return;
    case IncarnationPhase::kForking:  // there is no child yet
    case IncarnationPhase::kRunning:  // executed already
    case IncarnationPhase::kWedged:
    case IncarnationPhase::kEnded: return;
  }
}

void IncarnationState::ending(Instant now, KeeperActions& actions) {
  if (ending_at_ || signalled_ || leader_exited()) return;
  ending_at_ = now;
  actions.emplace_back(Report{report()});
}

void IncarnationState::exited(const RankEnd& end, Instant now, KeeperActions& actions) {
  if (leader_exited()) return;  // told once is enough
  MONARCH_ASSERT(phase_ != IncarnationPhase::kForking && phase_ != IncarnationPhase::kEnded);
  ended_at_ = now;
  if (end_.kind == EndKind::kNone) {
    end_ = end;
    end_.after_our_signal = signalled_ && !ending_at_;
    // The kernel only counts what its OOM killer takes: after our own SIGKILL the count is about somebody else.
    const bool killed = phase_ == IncarnationPhase::kKilling || phase_ == IncarnationPhase::kWedged;
    if (killed && !ending_at_) end_.out_of_memory = false;
  }
  switch (phase_) {
    case IncarnationPhase::kGated:
    case IncarnationPhase::kStarting:
    case IncarnationPhase::kRunning:
    case IncarnationPhase::kHeld: return wait_for_rest(now, actions);
    case IncarnationPhase::kKilling:
      if (lingers()) rest_killed_at_ = now + kLinger;
      return check_tree(now, actions);
    case IncarnationPhase::kGrace:
      // Children that were told to end have the rest of the grace.
      return group_told_ || !options_.gated ? check_tree(now, actions) : wait_for_rest(now, actions);
    case IncarnationPhase::kWedged: return check_tree(now, actions);
    case IncarnationPhase::kForking:
    case IncarnationPhase::kEnded: return;
  }
}

void IncarnationState::tree_empty(KeeperActions& actions) {
  if (!leader_exited()) return;  // no answer to a question of ours
  switch (phase_) {
    case IncarnationPhase::kGrace:
    case IncarnationPhase::kKilling:
    case IncarnationPhase::kWedged:
      deadline_ = Instant::never();
      rest_killed_at_ = Instant::never();
      next_check_ = Instant::never();
      actions.emplace_back(Reap{options_.key});
      return enter(IncarnationPhase::kEnded, actions);
    case IncarnationPhase::kForking:  // the leader has not exited in these
    case IncarnationPhase::kGated:
    case IncarnationPhase::kStarting:
    case IncarnationPhase::kRunning:
    case IncarnationPhase::kHeld:
    case IncarnationPhase::kEnded: return;
  }
}

void IncarnationState::tree_busy(bool own, Instant now, KeeperActions& actions) {
  if (!leader_exited()) return;
  // A large one takes its time to die, and what it leaves has its moment from then; one that is stuck is not waited
  // for.
  if (own && lingers()) rest_killed_at_ = std::min(now + kLinger, deadline_ - options_.kill_deadline + kDiesWithin);
  const bool first = check_period_ == kFirstCheckPeriod;
  switch (phase_) {
    case IncarnationPhase::kGrace: break;
    case IncarnationPhase::kKilling:
    case IncarnationPhase::kWedged:
      // Something was forked while the others were killed.
      if (!lingers()) actions.emplace_back(KillTree{options_.key});
      break;
    case IncarnationPhase::kForking:
    case IncarnationPhase::kGated:
    case IncarnationPhase::kStarting:
    case IncarnationPhase::kRunning:
    case IncarnationPhase::kHeld:
    case IncarnationPhase::kEnded: return;
  }
  next_check_ = now + check_period_;
  if (first) actions.emplace_back(Report{report()});
}

}  // namespace monarch
