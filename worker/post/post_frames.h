#pragma once

// How what a post says and hears travels: which message has which number, and where its body is, if it has one.
//
// Thread: pure functions.

#include <optional>
#include <string_view>

#include "transport/base/result.h"
#include "transport/messages/post.h"
#include "transport/wire/frame.h"
#include "worker/core/post/post_steps.h"

namespace monarch::post {

// Where its body is on its way, if not beside it; nullptr: it has none that could be.
inline std::optional<AsideBody>* aside_of(LineAsks& message) { return &message.aside; }
inline std::optional<AsideBody>* aside_of(LineAnswer& message) { return &message.aside; }
template <class Message>
std::optional<AsideBody>* aside_of(Message& /*without one*/) {
  return nullptr;
}

Result<post_event::DoorMessage> read_door_message(const FrameHeader& header, std::string_view payload);
Result<post_event::PeerMessage> read_peer_message(const FrameHeader& header, std::string_view payload);

}  // namespace monarch::post
