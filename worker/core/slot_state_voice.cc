#include "worker/core/notify.h"
#include "worker/core/slot_state.h"

namespace monarch {

using keeper_action::AnswerCommit;
using keeper_action::FreezeTree;
using keeper_action::Report;
using keeper_action::TellRank;

void SlotState::renewed(Instant until, Instant now) {
  // Low is less than a third of what was just granted.
  lease_low_at_ = lease_.ends_at() == Instant::never() ? Instant::never() : until - (until - now) / 3;
}

void SlotState::tell_lease_low(Instant now, KeeperActions& actions) {
  lease_low_at_ = Instant::never();  // once, until it is renewed
  if (phase_ == SlotPhase::kRunning) tell(lease_low_event(lease_.ends_at() - now), actions);
}

void SlotState::tell(const std::string& json, KeeperActions& actions) {
  switch (phase_) {
    case SlotPhase::kForking:  // what comes before it listens is kept for it
    case SlotPhase::kGated:
    case SlotPhase::kStarting:
    case SlotPhase::kRunning:
    case SlotPhase::kHeld:
    case SlotPhase::kGrace:
      if (!options_.gated) return;  // a process of KeeperSpawn has no door
      told_stopping_ = told_stopping_ || is_event(json, "stopping");
      actions.emplace_back(TellRank{options_.key, json});
      return;
    case SlotPhase::kKilling:  // nothing more can come of it
    case SlotPhase::kWedged:
    case SlotPhase::kEnded: return;
  }
}

void SlotState::spoke(const keeper_event::Spoke& word, KeeperActions& actions) {
  switch (phase_) {
    case SlotPhase::kStarting:  // it was executed, and its word overtook the kernel's
    case SlotPhase::kRunning:
    case SlotPhase::kHeld:
    case SlotPhase::kGrace:
    case SlotPhase::kKilling:  // the last words of a tree that is going
    case SlotPhase::kWedged:
      progress_ = word.progress;
      talk_drops_ = word.drops;
      if (word.ready && options_.ready == ReadyKind::kNotify) ready_ = true;
      actions.emplace_back(Report{report()});
      return;
    case SlotPhase::kForking:  // there is no program yet
    case SlotPhase::kGated:
    case SlotPhase::kEnded: return;  // its end is what is known of it
  }
}

void SlotState::stood(Standstill standstill, KeeperActions& actions) {
  // Without a cgroup a hold is a SIGSTOP, which others may undo; and it has no lease (I1).
  if (phase_ == SlotPhase::kHeld && standstill == Standstill::kNone) {
    actions.emplace_back(FreezeTree{options_.key});
    return;
  }
  if (standstill == standstill_) return;
  switch (phase_) {
    case SlotPhase::kStarting:  // a setup, or its word overtook the kernel's
    case SlotPhase::kRunning:
    case SlotPhase::kGrace:
      standstill_ = standstill;
      actions.emplace_back(Report{report()});
      return;
    case SlotPhase::kHeld:  // frozen by us
    case SlotPhase::kForking:
    case SlotPhase::kGated:
    case SlotPhase::kKilling:  // it is going
    case SlotPhase::kWedged:
    case SlotPhase::kEnded: return;
  }
}

void SlotState::commits(const keeper_event::Committing& event, KeeperActions& actions) {
  switch (phase_) {
    case SlotPhase::kStarting:  // it was executed, and its word overtook the kernel's
    case SlotPhase::kRunning:
    case SlotPhase::kHeld:  // it asked before it was frozen: whether that counts is the supervisor's to say
    case SlotPhase::kGrace:
      commit_ = event.commit;
      actions.emplace_back(Report{report()});
      return;
    case SlotPhase::kForking:  // there is no program yet
    case SlotPhase::kGated:
    case SlotPhase::kKilling:  // nobody is left to be told
    case SlotPhase::kWedged:
    case SlotPhase::kEnded: return;
  }
}

// In every phase: what was asked is over.
void SlotState::commit_answered(const CommitAnswer& answer, KeeperActions& actions) {
  if (!commit_ || commit_->number != answer.number) return;  // said again, or of an earlier question
  commit_.reset();
  actions.emplace_back(AnswerCommit{options_.key, answer});
  actions.emplace_back(Report{report()});
}

void SlotState::accepts_connections(KeeperActions& actions) {
  if (options_.ready != ReadyKind::kTcp || ready_) return;
  switch (phase_) {
    case SlotPhase::kRunning:
    case SlotPhase::kHeld:
    case SlotPhase::kGrace:
      ready_ = true;
      actions.emplace_back(Report{report()});
      return;
    case SlotPhase::kForking:  // it is not this rank that accepts
    case SlotPhase::kGated:
    case SlotPhase::kStarting:
    case SlotPhase::kKilling:
    case SlotPhase::kWedged:
    case SlotPhase::kEnded: return;
  }
}

}  // namespace monarch
