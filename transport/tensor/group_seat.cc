#include "transport/tensor/group_seat.h"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "transport/base/text.h"

namespace monarch::tensor {

namespace {

// What the first says of an epoch; nothing: it is none of so many members.
std::optional<GroupMeeting> read_meeting(const std::string& bytes, std::uint32_t members) {
  GroupMeetingWord word;
  codec::DecodeError error;
  const bool is_one = codec::decode(bytes, word, error, kGroupLimits);
  if (!is_one || word.generations.size() != members || word.bytes.data.size() > kOfferBytes) return std::nullopt;
  return GroupMeeting{word.epoch, std::move(word.generations), {word.address, word.port, word.bytes.data}};
}

}  // namespace

GroupSeat::GroupSeat(EventLoop& loop, const OwnerServer& server, HeldGroups& held, std::string name,
                     GroupMemberOptions options)
    : loop_(loop),
      server_(server),
      held_(held),
      name_(std::move(name)),
      self_(options.self),
      core_(std::move(options)) {}

GroupSeat::~GroupSeat() {
  feed(member_event::Leave{});
  end_link();
  loop_.cancel(timer_);
}

void GroupSeat::call(const GroupOffer& offer, GroupNewsPtr news) {
  if (news_) {
    const std::string why = text(core_.members().at(self_).name(), " has called for the group again");
    news_->tell([&why](GroupNews::Told& told) {
      if (told.meeting) {
        if (!told.lost) told.lost = why;
      } else if (!told.refused) {
        told.refused = Error{ErrorCode::kInvalid, why};
      }
    });
  }
  news_ = std::move(news);
  offer_ = offer;
  feed(member_event::Call{});
}

void GroupSeat::found(std::uint64_t generation, Card card) {
  card_ = std::move(card);
  generation_ = generation;
  feed(member_event::Found{generation});
}

void GroupSeat::failed(const RosterVerdict& verdict) {
  for (std::uint32_t rank = 0; rank < verdict.count; ++rank) {
    feed(member_event::Failed{{verdict.mesh, verdict.first + rank}, verdict.generation, verdict.cause});
  }
}

void GroupSeat::feed(const MemberEvent& event) {
  for (const MemberAction& action : core_.step(event, loop_.now())) {
    std::visit([this](const auto& one) { perform(one); }, action);
  }
  loop_.cancel(std::exchange(timer_, 0));
  if (core_.next_due() == Instant::never()) return;
  timer_ = loop_.at(core_.next_due(), [this] { feed(member_event::Tick{}); });
}

// ---- What the core wants.

void GroupSeat::perform(const member_action::Ask& action) {
  news_->tell([&](GroupNews::Told& told) {
    told.question = {++questions_, action.since};
    if (told.waits.empty()) told.waits = text(core_.members().at(0).name(), ", which holds the group, has not called");
  });
}

// A first on this machine may be in another network: then there is the other way.
void GroupSeat::perform(const member_action::Dial& /*action*/) {
  const bool here = card_->machine == server_.card().machine;
  if (!here && card_->address.empty()) {
    return feed(member_event::LinkEnded{"it is on another host, and tensors.transports has no tcp"});
  }
  if (!here || way_ == LinkWay::kToHost) way_ = card_->address.empty() ? LinkWay::kOnMachine : LinkWay::kToHost;
  HelloAsk ask;
  const GroupMember first = core_.members().at(0);
  ask.reader = server_.rank();
  ask.owner = {first.mesh, first.rank, generation_};
  ask.purpose = LinkPurpose::kMeets;
  ask.publication = name_;
  auto dial = LinkDial::start(*card_, way_, std::move(ask));
  if (!dial.ok()) return lost_link(dial.error().message);
  dial_ = std::move(*dial);
  patience_ = loop_.at(loop_.now() + kDialPatience, [this] {
    patience_ = 0;
    lost_link(text("no answer within ", to_text(kDialPatience)));
  });
  watch(dial_->descriptor(), true);
}

void GroupSeat::perform(const member_action::Say& action) {
  if (is_first()) return held_.call(name_, action.number, core_.members(), offer_);
  const LinkFrame frame{.kind = FrameKind::kMeet, .version = {server_.rank().generation, action.number}};
  if (!link_->send(frame, codec::encode(GroupCallWord{core_.members().runs()})).ok())
    return lost_link("it reads nothing");
  flush();
}

void GroupSeat::perform(const member_action::EndLink& /*action*/) {
  if (is_first()) return held_.leave(name_);
  end_link();
}

void GroupSeat::perform(const member_action::Joined& action) {
  news_->tell([&action](GroupNews::Told& told) { told.meeting = action.meeting; });
}

void GroupSeat::perform(const member_action::Lost& action) {
  news_->tell([&action](GroupNews::Told& told) { told.lost = action.text; });
}

void GroupSeat::perform(const member_action::Waits& action) {
  news_->tell([&action](GroupNews::Told& told) { told.waits = action.text; });
}

void GroupSeat::perform(const member_action::Refuse& action) {
  end_link();
  news_->tell([&action](GroupNews::Told& told) { told.refused = Error{ErrorCode::kInvalid, action.text}; });
}

// ---- The link.

void GroupSeat::end_link() {
  loop_.forget(std::exchange(watch_, 0));
  loop_.cancel(std::exchange(patience_, 0));
  dial_.reset();
  link_.reset();
}

void GroupSeat::lost_link(const std::string& why) {
  end_link();
  way_ = way_ == LinkWay::kOnMachine ? LinkWay::kToHost : LinkWay::kOnMachine;
  feed(member_event::LinkEnded{why});
}

// The descriptor stays the same from the dial to the link.
void GroupSeat::watch(int fd, bool writes) {
  const Interest wanted = writes ? Interest::kReadWrite : Interest::kRead;
  if (watch_ != 0) return loop_.change(watch_, wanted);
  const auto made = loop_.watch(fd, wanted, [this](Readiness) { dial_ ? go_on() : hear_link(); });
  watch_ = made.ok() ? *made : 0;
  if (watch_ == 0) lost_link(made.error().message);
}

void GroupSeat::go_on() {
  auto link = dial_->go_on();
  if (!link.ok()) return lost_link(link.error().message);
  if (*link == nullptr) return watch(dial_->descriptor(), (dial_->events() & POLLOUT) != 0);
  dial_.reset();
  loop_.cancel(std::exchange(patience_, 0));
  link_ = std::move(*link);
  feed(member_event::Linked{});
}

void GroupSeat::flush() {
  if (!link_->flush().ok()) return lost_link("it has ended");
  watch(link_->descriptor(), link_->wants_to_write());
}

void GroupSeat::hear_link() {
  flush();
  while (link_) {
    auto received = link_->receive(kFirstBytes);
    if (!received.ok()) return lost_link(received.error().message);
    if (!*received) return;
    if (!hear(**received)) return;
  }
}

bool GroupSeat::hear(const StreamLink::Received& word) {
  const LinkFrame& frame = word.frame;
  switch (frame.kind) {
    case FrameKind::kMet: {
      auto meeting = read_meeting(word.behind, core_.members().size());
      if (!meeting) break;
      feed(member_event::Answered{frame.version.number, std::move(*meeting)});
      return link_ != nullptr;
    }
    case FrameKind::kLost: {
      std::optional<std::uint32_t> member;
      if (frame.rows > 0 && frame.rows <= core_.members().size()) member = frame.rows - 1;
      feed(member_event::EpochLost{{frame.version.generation, frame.version.number}, member, printable(word.behind)});
      return link_ != nullptr;
    }
    case FrameKind::kWaits: feed(member_event::Told{printable(word.behind)}); return link_ != nullptr;
    case FrameKind::kUnfit:
      end_link();
      feed(member_event::Refused{printable(word.behind)});
      return false;
    default: break;
  }
  lost_link("it says what nobody may say");
  return false;
}

}  // namespace monarch::tensor
