#include "transport/tensor/held_groups.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "transport/base/text.h"

namespace monarch::tensor {

bool RosterVerdicts::add(const RosterVerdict& verdict) {
  RosterVerdict& known = all_[{verdict.mesh, verdict.first}];
  if (known.generation >= verdict.generation) return false;
  known = verdict;
  return true;
}

bool RosterVerdicts::is_over(const GroupMember& member, std::uint64_t generation) const {
  auto verdict = all_.upper_bound({member.mesh, member.rank});
  if (verdict == all_.begin()) return false;
  const RosterVerdict& of = (--verdict)->second;
  return of.mesh == member.mesh && member.rank - of.first < of.count && generation <= of.generation;
}

HeldGroups::HeldGroups(EventLoop& loop, OwnerServer& server, const RosterVerdicts& verdicts, Own own)
    : loop_(loop), server_(server), verdicts_(verdicts), own_(std::move(own)) {
  server_.meet(
      {.heard = [this](LinkNumber link, const HelloAsk& peer,
                       const StreamLink::Received& word) { heard(link, peer, word); },
       .left = [this](LinkNumber link, const HelloAsk& peer) { feed(peer.publication, group_event::Left{link}); }});
}

HeldGroups::~HeldGroups() {
  server_.meet({});
  for (const auto& [name, held] : held_) loop_.cancel(held.timer);
}

// ---- What is said.

void HeldGroups::call(const std::string& name, std::uint64_t number, const GroupMembers& members,
                      const GroupOffer& offer) {
  const LinkRank& self = server_.rank();
  feed(name, group_event::Call{.link = 0,
                               .member = {self.mesh, self.rank},
                               .generation = self.generation,
                               .number = number,
                               .members = members,
                               .offer = offer});
}

void HeldGroups::heard(LinkNumber link, const HelloAsk& peer, const StreamLink::Received& word) {
  GroupCallWord call;
  codec::DecodeError error;
  const bool is_one = word.frame.kind == FrameKind::kMeet && codec::decode(word.behind, call, error, kGroupLimits);
  auto members = is_one ? GroupMembers::read(call.members) : std::nullopt;
  if (!members) return server_.end(link, "a call for a group that is none");
  if (!held_.contains(peer.publication) && held_.size() >= kMostGroups) {
    return server_.end(link, text(server_.rank().name(), " holds ", kMostGroups, " groups, and no more"));
  }
  const GroupMember member{peer.reader.mesh, peer.reader.rank};
  if (verdicts_.is_over(member, peer.reader.generation)) return server_.end(link, "the roster says that it has ended");
  feed(peer.publication, group_event::Call{.link = link,
                                           .member = member,
                                           .generation = peer.reader.generation,
                                           .number = word.frame.version.number,
                                           .members = std::move(*members),
                                           .offer = {}});
  own_.called(peer.publication);
}

void HeldGroups::failed(const RosterVerdict& verdict) {
  std::vector<std::string> names;
  for (const auto& [name, held] : held_) names.push_back(name);
  for (const std::string& name : names) {
    for (std::uint32_t rank = 0; rank < verdict.count && held_.contains(name); ++rank) {
      feed(name, group_event::Failed{{verdict.mesh, verdict.first + rank}, verdict.generation, verdict.cause});
    }
  }
}

// ---- What it does.

HeldGroups::Held& HeldGroups::held(const std::string& name) {
  const auto found = held_.find(name);
  if (found != held_.end()) return found->second;
  const LinkRank& self = server_.rank();
  GroupOptions options{.first = {self.mesh, self.rank}, .generation = self.generation, .count = count_};
  return held_.emplace(name, Held{.core = GroupCore(std::move(options))}).first->second;
}

// What it does may end links, which is told here again.
void HeldGroups::feed(const std::string& name, const GroupEvent& event) {
  const bool begins = std::holds_alternative<group_event::Call>(event);
  if (!begins && !held_.contains(name)) return;
  for (const GroupAction& action : held(name).core.step(event, loop_.now())) {
    std::visit([&](const auto& one) { perform(name, one); }, action);
  }
  tidy(name);
}

void HeldGroups::tidy(const std::string& name) {
  const auto found = held_.find(name);
  if (found == held_.end()) return;
  Held& held = found->second;
  loop_.cancel(std::exchange(held.timer, 0));
  if (held.core.is_idle()) {
    count_ = std::max(count_, held.core.count());
    held_.erase(found);
  } else if (held.core.next_due() != Instant::never()) {
    held.timer = loop_.at(held.core.next_due(), [this, name] { feed(name, group_event::Tick{}); });
  }
}

// Behind what others are told, in this order: who hears of an epoch here may end its process at once.
void HeldGroups::tell_own(const std::string& name, MemberEvent event) {
  loop_.defer(scope_.guard([this, name, event = std::move(event)] { own_.tell(name, event); }));
}

void HeldGroups::perform(const std::string& name, const group_action::Answer& action) {
  if (action.link == 0) return tell_own(name, member_event::Answered{action.number, action.meeting});
  const GroupMeeting& meeting = action.meeting;
  const GroupMeetingWord word{
      meeting.epoch, meeting.generations, meeting.offer.address, meeting.offer.port, {meeting.offer.bytes}};
  server_.send(action.link, {.kind = FrameKind::kMet, .version = {meeting.epoch.generation, action.number}},
               codec::encode(word));
}

void HeldGroups::perform(const std::string& name, const group_action::Lost& action) {
  if (action.link == 0) return tell_own(name, member_event::EpochLost{action.epoch, action.member, action.text});
  LinkFrame frame{.kind = FrameKind::kLost, .version = {action.epoch.generation, action.epoch.count}};
  if (action.member) frame.rows = *action.member + 1;
  server_.send(action.link, frame, action.text);
}

void HeldGroups::perform(const std::string& name, const group_action::Waits& action) {
  if (action.link == 0) return tell_own(name, member_event::Told{action.text});
  server_.send(action.link, {.kind = FrameKind::kWaits}, action.text);
}

void HeldGroups::perform(const std::string& name, const group_action::Unfit& action) {
  if (action.link == 0) return tell_own(name, member_event::Refused{action.text});
  server_.end(action.link, action.text);
}

}  // namespace monarch::tensor
