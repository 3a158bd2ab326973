#include "worker/post/post_frames.h"

#include <utility>

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

}  // namespace

Result<post_event::DoorMessage> read_door_message(const FrameHeader& header, std::string_view payload) {
  post_event::DoorMessage read;
  const auto take = [&](auto&& message) { read = std::forward<decltype(message)>(message); };
  MONARCH_TRY(route(header, payload, when<PostHello>(take), when<PostCall, decode_reckonable<PostCall>>(take),
                    when<PostCancel>(take), when<PostReply>(take), when<PostWait>(take), when<PostCard>(take)));
  return read;
}

Result<post_event::PeerMessage> read_peer_message(const FrameHeader& header, std::string_view payload) {
  post_event::PeerMessage read;
  const auto take = [&](auto&& message) { read = std::forward<decltype(message)>(message); };
  MONARCH_TRY(route(header, payload, when<LineHello>(take), when<LineAccepted>(take), when<LineOther>(take),
                    when<LineResync>(take), when<LineAsks>(take), when<LineAnswer>(take), when<LineTakeBack>(take),
                    when<LineHeard>(take)));
  return read;
}

}  // namespace monarch::post
