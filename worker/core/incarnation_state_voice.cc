#include "worker/core/incarnation_state.h"
#include "worker/core/notify.h"

namespace monarch {

using keeper_action::AnswerCommit;
using keeper_action::FreezeTree;
using keeper_action::Report;
using keeper_action::TellRank;

void IncarnationState::renewed(Instant until, Instant now) {
  // Low is less than a third of what was just granted.
  lease_low_at_ = lease_.ends_at() == Instant::never() ? Instant::never() : until - (until - now) / 3;
}

void IncarnationState::tell_lease_low(Instant now, KeeperActions& actions) {
  lease_low_at_ = Instant::never();  // once, until it is renewed
  if (phase_ == IncarnationPhase::kRunning) tell(lease_low_event(lease_.ends_at() - now), actions);
}

void IncarnationState::tell(const std::string& json, KeeperActions& actions) {
  switch (phase_) {
    case IncarnationPhase::kForking:  // what comes before it listens is kept for it
    case IncarnationPhase::kGated:
    case IncarnationPhase::kStarting:
    case IncarnationPhase::kRunning:
    case IncarnationPhase::kHeld:
    case IncarnationPhase::kGrace:
      if (!options_.gated) return;  // a process of KeeperSpawn has no door
      told_stopping_ = told_stopping_ || is_event(json, "stopping");
      actions.emplace_back(TellRank{options_.key, json});
      return;
    case IncarnationPhase::kKilling:  // nothing more can come of it
    case IncarnationPhase::kWedged:
    case IncarnationPhase::kEnded: return;
  }
}

void IncarnationState::spoke(const keeper_event::Spoke& word, KeeperActions& actions) {
  switch (phase_) {
    case IncarnationPhase::kStarting:  // it was executed, and its word overtook the kernel's
    case IncarnationPhase::kRunning:
    case IncarnationPhase::kHeld:
    case IncarnationPhase::kGrace:
    case IncarnationPhase::kKilling:  // the last words of a tree that is going
    case IncarnationPhase::kWedged:
      progress_ = word.progress;
      talk_drops_ = word.drops;
      if (word.ready && options_.ready == ReadyKind::kNotify) ready_ = true;
      actions.emplace_back(Report{report()});
      return;
    case IncarnationPhase::kForking:  // there is no program yet
    case IncarnationPhase::kGated:
    case IncarnationPhase::kEnded: return;  // its end is what is known of it
  }
}

void IncarnationState::stood(Standstill standstill, KeeperActions& actions) {
  // Without a cgroup a hold is a SIGSTOP, which others may undo; and it has no lease (I1).
  if (phase_ == IncarnationPhase::kHeld && standstill == Standstill::kNone) {
    actions.emplace_back(FreezeTree{options_.key});
    return;
  }
  if (standstill == standstill_) return;
  switch (phase_) {
    case IncarnationPhase::kStarting:  // a setup, or its word overtook the kernel's
    case IncarnationPhase::kRunning:
    case IncarnationPhase::kGrace:
      standstill_ = standstill;
      actions.emplace_back(Report{report()});
      return;
    case IncarnationPhase::kHeld:  // frozen by us
    case IncarnationPhase::kForking:
    case IncarnationPhase::kGated:
    case IncarnationPhase::kKilling:  // it is going
    case IncarnationPhase::kWedged:
    case IncarnationPhase::kEnded: return;
  }
}

void IncarnationState::commits(const keeper_event::Committing& event, KeeperActions& actions) {
  switch (phase_) {
    case IncarnationPhase::kStarting:  // it was executed, and its word overtook the kernel's
    case IncarnationPhase::kRunning:
    case IncarnationPhase::kHeld:  // it asked before it was frozen: whether that counts is the supervisor's to say
    case IncarnationPhase::kGrace:
      commit_ = event.commit;
      actions.emplace_back(Report{report()});
      return;
    case IncarnationPhase::kForking:  // there is no program yet
    case IncarnationPhase::kGated:
    case IncarnationPhase::kKilling:  // nobody is left to be told
    case IncarnationPhase::kWedged:
    case IncarnationPhase::kEnded: return;
  }
}

// In every phase: what was asked is over.
void IncarnationState::commit_answered(const CommitAnswer& answer, KeeperActions& actions) {
  if (!commit_ || commit_->number != answer.number) return;  // said again, or of an earlier question
  commit_.reset();
  actions.emplace_back(AnswerCommit{options_.key, answer});
  actions.emplace_back(Report{report()});
}

void IncarnationState::accepts_connections(KeeperActions& actions) {
  if (options_.ready != ReadyKind::kTcp || ready_) return;
  switch (phase_) {
    case IncarnationPhase::kRunning:
    case IncarnationPhase::kHeld:
    case IncarnationPhase::kGrace:
      ready_ = true;
      actions.emplace_back(Report{report()});
      return;
    case IncarnationPhase::kForking:  // it is not this rank that accepts
    case IncarnationPhase::kGated:
    case IncarnationPhase::kStarting:
    case IncarnationPhase::kKilling:
    case IncarnationPhase::kWedged:
    case IncarnationPhase::kEnded: return;
  }
}

}  // namespace monarch
