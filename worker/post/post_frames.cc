#include "worker/post/post_frames.h"

#include <utility>

#include "transport/base/text.h"
#include "transport/wire/codec.h"
#include "transport/wire/from_host.h"
#include "transport/wire/messages.h"

namespace monarch::post {

namespace {

// A time with which nobody could reckon is none that is meant.
template <class Message>
Result<Message> decode_reckonable(std::string_view payload, std::size_t limit) {
  Result<Message> message = decode_payload<Message>(payload, limit);
  if (message.ok() && !is_reckonable(*message)) return Error{ErrorCode::kInvalid, "a time that is none"};
  return message;
}

// A rank cuts what its user's code lets out (worker/rank/deliveries.h).
Result<PostReply> decode_reply(std::string_view payload, std::size_t limit) {
  Result<PostReply> reply = decode_payload<PostReply>(payload, limit);
  if (reply.ok() && !is_bounded(reply->outcome)) {
    return Error{ErrorCode::kInvalid, text("an outcome with a text of more than ", kOutcomeTextBytes, " bytes")};
  }
  return reply;
}

}  // namespace

Result<post_event::DoorMessage> read_door_message(const FrameHeader& header, std::string_view payload) {
  post_event::DoorMessage read;
  const auto take = [&](auto&& message) { read = std::forward<decltype(message)>(message); };
  MONARCH_TRY(route(header, payload, when<PostHello>(take), when<PostCall, decode_reckonable<PostCall>>(take),
                    when<PostCancel>(take), when<PostReply, decode_reply>(take), when<PostWait>(take),
                    when<PostCard>(take), when<PostLetGo>(take), when<PostWish>(take)));
  return read;
}

Result<post_event::PeerMessage> read_peer_message(const FrameHeader& header, std::string_view payload) {
  post_event::PeerMessage read;
  const auto take = [&](auto&& message) { read = std::forward<decltype(message)>(message); };
  MONARCH_TRY(route(
      header, payload, when<LineHello, decode_from_host<LineHello>>(take),
      when<LineAccepted, decode_from_host<LineAccepted>>(take), when<LineOther, decode_from_host<LineOther>>(take),
      when<LineResync, decode_from_host<LineResync>>(take), when<LineAsks, decode_from_host<LineAsks>>(take),
      when<LineAnswer, decode_from_host<LineAnswer>>(take), when<LineAnswers, decode_from_host<LineAnswers>>(take),
      when<LineTakeBack, decode_from_host<LineTakeBack>>(take), when<LineHeard, decode_from_host<LineHeard>>(take)));
  return read;
}

}  // namespace monarch::post
