#include "transport/tensor/core/group_member_core.h"

#include <algorithm>

#include "transport/base/text.h"

namespace monarch::tensor {

GroupMemberCore::GroupMemberCore(GroupMemberOptions options)
    : options_(std::move(options)), linked_(is_first()), number_(options_.number) {}

MemberActions GroupMemberCore::step(const MemberEvent& event, Instant now) {
  now_ = now;
  out_.clear();
  std::visit([this](const auto& one) { on(one); }, event);
  return std::exchange(out_, {});
}

void GroupMemberCore::on(const member_event::Call& /*event*/) {
  pause_ = kFirstPause;
  if (linked_) return say();
  ask();
}

void GroupMemberCore::on(const member_event::Leave& /*event*/) {
  phase_ = Phase::kNone;
  end_link();
}

void GroupMemberCore::on(const member_event::Found& event) {
  if (phase_ != Phase::kAsking) return;  // of a call that is over
  const auto verdict = verdicts_.find(0);
  if (verdict != verdicts_.end() && verdict->second.generation >= event.generation) return ask();
  linked_to_ = event.generation;
  phase_ = Phase::kDialing;
  out_.emplace_back(member_action::Dial{});
}

void GroupMemberCore::on(const member_event::Linked& /*event*/) {
  if (phase_ != Phase::kDialing) return;  // it was ended in the same moment
  linked_ = true;
  say();
}

void GroupMemberCore::on(const member_event::LinkEnded& event) {
  linked_ = false;
  linked_to_ = 0;
  switch (phase_) {
    case Phase::kDialing:
    case Phase::kCalling: return pause(event.why);
    case Phase::kIn: return lose(0, text("the connection to ", options_.members.at(0).name(), " ended"));
    case Phase::kNone:
    case Phase::kAsking:   // there is none
    case Phase::kPausing:  // the same
    case Phase::kLost: return;
  }
}

void GroupMemberCore::on(const member_event::Refused& event) {
  if (!is_calling()) return on(member_event::LinkEnded{event.why});
  linked_ = is_first();
  linked_to_ = 0;
  phase_ = Phase::kNone;
  out_.emplace_back(member_action::Refuse{event.why});
}

void GroupMemberCore::on(const member_event::Answered& event) {
  if (phase_ != Phase::kCalling || event.number != number_) return;  // of a call that is over
  phase_ = Phase::kIn;
  meeting_ = event.meeting;
  out_.emplace_back(member_action::Joined{meeting_});
  for (const auto& [member, verdict] : verdicts_) look_at_verdict(member);
}

void GroupMemberCore::on(const member_event::Told& event) {
  if (phase_ == Phase::kCalling) out_.emplace_back(member_action::Waits{event.text});
}

void GroupMemberCore::on(const member_event::EpochLost& event) {
  if (phase_ == Phase::kIn && event.epoch == meeting_.epoch) lose(event.member, event.text);
}

void GroupMemberCore::on(const member_event::Failed& event) {
  const auto member = options_.members.find(event.member);
  if (!member) return;
  Verdict& verdict = verdicts_[*member];
  if (verdict.generation >= event.generation) return;
  verdict = {event.generation, event.cause};
  look_at_verdict(*member);
  if (*member == 0) look_at_link();
}

void GroupMemberCore::on(const member_event::Tick& /*event*/) {
  if (phase_ == Phase::kPausing && now_ >= again_at_) ask();
}

bool GroupMemberCore::is_calling() const {
  switch (phase_) {
    case Phase::kAsking:
    case Phase::kDialing:
    case Phase::kPausing:
    case Phase::kCalling: return true;
    case Phase::kNone:
    case Phase::kIn:
    case Phase::kLost: break;
  }
  return false;
}

// ---- What it does.

void GroupMemberCore::ask() {
  phase_ = Phase::kAsking;
  const auto verdict = verdicts_.find(0);
  out_.emplace_back(member_action::Ask{verdict == verdicts_.end() ? 0 : verdict->second.generation});
}

void GroupMemberCore::say() {
  phase_ = Phase::kCalling;
  out_.emplace_back(member_action::Say{++number_});
}

void GroupMemberCore::pause(const std::string& why) {
  phase_ = Phase::kPausing;
  again_at_ = now_ + pause_;
  pause_ = std::min(pause_ * 2, kLongestPause);
  out_.emplace_back(
      member_action::Waits{text(options_.members.at(0).name(), ", which holds the group, is not reached: ", why)});
}

// Also one that is dialed.
void GroupMemberCore::end_link() {
  if (linked_ || linked_to_ != 0) out_.emplace_back(member_action::EndLink{});
  linked_ = is_first();
  linked_to_ = 0;
}

void GroupMemberCore::lose(std::optional<std::uint32_t> member, const std::string& why) {
  phase_ = Phase::kLost;
  lost_by_ = member;
  lost_at_ = now_;
  has_cause_ = false;
  out_.emplace_back(member_action::Lost{why});
  if (member && verdicts_.contains(*member)) look_at_verdict(*member);
}

// A verdict on an earlier process than that of the epoch says nothing of it.
void GroupMemberCore::look_at_verdict(std::uint32_t member) {
  const Verdict& verdict = verdicts_.at(member);
  const bool lacks_cause = phase_ == Phase::kLost && !has_cause_ && (lost_by_ == member || now_ - lost_at_ <= kAtOnce);
  if (phase_ != Phase::kIn && !lacks_cause) return;
  if (verdict.generation < meeting_.generations.at(member)) return;
  phase_ = Phase::kLost;
  has_cause_ = true;
  out_.emplace_back(member_action::Lost{text(options_.members.at(member).name(), " is lost: ", verdict.cause)});
}

// The first has come to its end, and its link may not have: a host that is lost says nothing.
void GroupMemberCore::look_at_link() {
  if (is_first() || linked_to_ == 0 || linked_to_ > verdicts_.at(0).generation) return;
  const bool calls = phase_ == Phase::kDialing || phase_ == Phase::kCalling;
  end_link();
  if (calls) ask();
}

}  // namespace monarch::tensor
