#pragma once

// What a post's core is told, and what it answers that is to be done. A body is named by its CallBody::at in each: in
// an event its driver has the bytes under that number, and keeps them until FreeBody.
//
// Thread: values.

#include <string>
#include <variant>
#include <vector>

#include "transport/base/ids.h"
#include "transport/messages/peer.h"
#include "transport/messages/post.h"
#include "transport/messages/roster.h"

namespace monarch {

using DoorId = StrongId<struct DoorIdTag, std::uint64_t>;  // one connection at the door

namespace post_event {

using DoorMessage = std::variant<PostHello, PostCall, PostCancel, PostReply, PostWait, PostCard>;
struct DoorSaid {
  DoorId door;
  DoorMessage message;
};
struct DoorLeft {
  DoorId door;
};
using PeerMessage =
    std::variant<LineHello, LineAccepted, LineOther, LineResync, LineAsks, LineAnswer, LineTakeBack, LineHeard>;
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
struct Tick {};

}  // namespace post_event

using PostEvent = std::variant<post_event::DoorSaid, post_event::DoorLeft, post_event::PeerSaid, post_event::PeerUp,
                               post_event::PeerDown, post_event::RosterCame, post_event::RankEnded, post_event::Tick>;

namespace post_action {

using DoorMessage = std::variant<PostWelcome, PostAnswer, PostOver, PostDeliver, PostTakeBack, PostFailure, PostRing>;
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
};
// Something that an operator should know.
struct Tell {
  PostWordKind kind = PostWordKind::kWaiting;
  std::string text;
};

}  // namespace post_action

using PostAction = std::variant<post_action::ToDoor, post_action::CloseDoor, post_action::HoldDoor,
                                post_action::ReadDoor, post_action::ToPeer, post_action::Dial,
                                post_action::PeersChanged, post_action::FreeBody, post_action::Tell>;
using PostActions = std::vector<PostAction>;

}  // namespace monarch
