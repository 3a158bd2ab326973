#pragma once

// What a post's core is told, and what it answers that is to be done. A body is named by its CallBody::at in each: in
// an event its driver has the bytes under that number, and keeps them until FreeBody; its way says whether they go in a
// message or beside it.
//
// Thread: values.

#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "transport/base/ids.h"
#include "transport/messages/peer.h"
#include "transport/messages/post.h"
#include "transport/messages/roster.h"

namespace monarch {

using DoorId = StrongId<struct DoorIdTag, std::uint64_t>;  // one connection at the door

// The body of a message of which one may be beside it; nullptr: it has none such.
template <class Message>
auto* body_of(Message& message) {
  using Plain = std::remove_const_t<Message>;
  constexpr bool kHasOutcome =
      std::is_same_v<Plain, PostReply> || std::is_same_v<Plain, PostAnswer> || std::is_same_v<Plain, LineAnswer>;
  constexpr bool kHasBody =
      std::is_same_v<Plain, PostCall> || std::is_same_v<Plain, PostDeliver> || std::is_same_v<Plain, LineAsks>;
  if constexpr (kHasOutcome) {
    return &message.outcome.body;
  } else if constexpr (kHasBody) {
    return &message.body;
  } else if constexpr (std::is_same_v<Plain, PostCard>) {
    return &message.text;
  } else {
    return static_cast<std::conditional_t<std::is_const_v<Message>, const CallBody*, CallBody*>>(nullptr);
  }
}
// use(body) for each body of a message, also for those that are in it with others.
template <class Message, class Use>
void each_body(Message& message, const Use& use) {
  using Plain = std::remove_const_t<Message>;
  if constexpr (std::is_same_v<Plain, PostAnswers> || std::is_same_v<Plain, LineAnswers>) {
    for (auto& one : message.answers) use(one.outcome.body);
  } else if (auto* const body = body_of(message); body != nullptr) {
    use(*body);
  }
}

namespace post_event {

using DoorMessage = std::variant<PostHello, PostCall, PostCancel, PostReply, PostWait, PostCard, PostLetGo, PostWish>;
struct DoorSaid {
  DoorId door;
  DoorMessage message;
};
struct DoorLeft {
  DoorId door;
};
using PeerMessage = std::variant<LineHello, LineAccepted, LineOther, LineResync, LineAsks, LineAnswer, LineAnswers,
                                 LineTakeBack, LineHeard>;
struct PeerSaid {
  HostId from;
  PeerMessage message;
};
struct PeerUp {  // our connection to it stands
  HostId host;
};
struct PeerDown {
  HostId host;
};
struct RosterCame {
  Roster roster;
};
// A process of a rank of this host has ended, by its keeper's word.
struct RankEnded {
  Incarnation process;
  std::string cause;
};
// The supervisor has decided about a wish.
struct WishAnswered {
  ClaimAnswer answer;
};
// After a FreeBody that asks for it: nothing in this process reads the bytes any more.
struct BodyGone {
  BodyId body;
};
struct Tick {};

}  // namespace post_event

using PostEvent = std::variant<post_event::DoorSaid, post_event::DoorLeft, post_event::PeerSaid, post_event::PeerUp,
                               post_event::PeerDown, post_event::RosterCame, post_event::RankEnded,
                               post_event::WishAnswered, post_event::BodyGone, post_event::Tick>;

namespace post_action {

using DoorMessage = std::variant<PostWelcome, PostAnswer, PostAnswers, PostOver, PostDeliver, PostTakeBack, PostFailure,
                                 PostRing, PostFree, PostGranted>;
struct ToDoor {
  DoorId door;
  DoorMessage message;
};
struct CloseDoor {  // it has said what nobody may say
  DoorId door;
  std::string why;
};
// It is not read until ReadDoor: too much of what it has called waits.
struct HoldDoor {
  DoorId door;
};
struct ReadDoor {
  DoorId door;
};
// By whose connection a message goes: a root's own, and answers by the connection that the root has made.
struct ToPeer {
  HostId host;
  PeerVia via = PeerVia::kOurs;
  post_event::PeerMessage message;
};
struct Dial {  // unless there is a connection of ours already; PeerUp follows, also then
  HostId host;
};
struct PeersChanged {};  // PostCore::peers()
struct FreeBody {
  BodyId body;
  bool tells = false;  // BodyGone follows
};
// A block of the post's own pool, as PostFree says it of a process'.
struct FreeBlock {
  PostFree free;
};
// Something that an operator should know.
struct Tell {
  PostWordKind kind = PostWordKind::kWaiting;
  std::string text;
};

}  // namespace post_action

using PostAction =
    std::variant<post_action::ToDoor, post_action::CloseDoor, post_action::HoldDoor, post_action::ReadDoor,
                 post_action::ToPeer, post_action::Dial, post_action::PeersChanged, post_action::FreeBody,
                 post_action::FreeBlock, post_action::Tell>;
using PostActions = std::vector<PostAction>;

}  // namespace monarch
