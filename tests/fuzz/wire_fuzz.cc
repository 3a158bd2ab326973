// Everything that reads bytes of a peer: the frame's header, the payload of every message, and a SEQPACKET message with
// its envelope. Each input is tried as a frame and as such a message. What decodes must be the same after another
// round, and the type of a frame picks the message.
//
// Thread: main, alone.

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/transport/wire/every_message.h"
#include "transport/base/assert.h"
#include "transport/base/limits.h"
#include "transport/wire/frame.h"
#include "transport/wire/seqpacket_message.h"
#include "transport/wire/seqpacket_socket.h"

namespace monarch {
namespace {

void check_payload(const Frame& frame) {
  const MessageKind& message = every_message()[frame.header.type % every_message().size()];
  const auto first = message.again(frame.payload, limits::kControlPayloadBytes);
  if (!first.ok()) return;
  const auto second = message.again(*first, first->size());
  MONARCH_ASSERT(second.ok());
  MONARCH_ASSERT(*second == *first);
}

void check_frame(std::string_view input) {
  const auto frame = decode_frame(input, limits::kControlPayloadBytes);
  if (!frame.ok()) return;
  MONARCH_ASSERT(encode_frame(*frame) == input);
  check_payload(*frame);
}

void check_message(std::string_view input) {
  auto pair = make_channel_pair();
  MONARCH_ASSERT(pair.ok());
  if (::send(pair->first.get(), input.data(), input.size(), MSG_DONTWAIT) < 0) return;  // too long for a message
  const auto received = receive_message(pair->second.get(), limits::kSeqpacketPayloadBytes);
  if (!received.ok()) return;
  MONARCH_ASSERT(received->has_value());
  const Frame& frame = (*received)->frame;
  const auto packed = pack_message(frame, {}, limits::kSeqpacketInlineBytes);
  MONARCH_ASSERT(packed.ok());
  MONARCH_ASSERT(packed->bytes == input);
  check_payload(frame);
}

}  // namespace
}  // namespace monarch

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  monarch::check_frame(input);
  monarch::check_message(input);
  return 0;
}
