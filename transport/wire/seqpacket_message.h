#pragma once

// One frame as one SEQPACKET message: an envelope of 8 bytes (how the payload travels, how many descriptors, how long),
// the frame's header, and the payload; a payload over the inline limit travels as a sealed memfd in front of the
// descriptors. Receiving is total: everything that a hostile peer can put into a message is checked, and every
// descriptor that came with a refused one is closed.
//
// Thread: any; a socket is used by one at a time.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/limits.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/wire/frame.h"

namespace monarch {

inline constexpr std::size_t kEnvelopeBytes = 8;

// A descriptor that is made when the message that has it is about to go: what waits holds none.
using LateDescriptor = std::function<Result<UniqueFd>()>;

struct OutgoingMessage {
  std::string bytes;
  std::vector<UniqueFd> descriptors;  // the memfd first, if there is one
  std::size_t charge = 0;             // what it counts in a queue: its bytes, inline or not
  std::string sealed;                 // a payload whose memfd is still to be made
  LateDescriptor late;                // comes last
};

struct ReceivedMessage {
  Frame frame;
  std::vector<UniqueFd> descriptors;
};

enum class SendOutcome : std::uint8_t {
  kSent,
  kFull,        // the socket's buffer is full: wait for writability
  kStarved,     // memory or descriptors are short: nothing will wake us, try again later
  kPeerClosed,  // nobody will ever read it
  kFailed,      // errno says why; it will not go better
};

// kInvalid beyond the limits; kBusy and others when a memfd cannot be had.
Result<OutgoingMessage> pack_message(const Frame& frame, std::vector<UniqueFd> descriptors, std::size_t inline_limit);
// The same, with what is made later left to complete_message().
Result<OutgoingMessage> pack_message_to_wait(const Frame& frame, std::vector<UniqueFd> descriptors, LateDescriptor late,
                                             std::size_t inline_limit);
// Before it is sent. Where it fails it may be tried again.
Status complete_message(OutgoingMessage& message);

// Neither blocks, whatever the socket's flags say: those are shared with every process that inherited it.
SendOutcome send_message(int fd, const OutgoingMessage& message);

// Nothing when no message waits; kGone at the end; kInvalid for what no peer of ours sends; kBusy while this process
// cannot hold the descriptors of the next one, which stays where it is: nothing will wake us, try again later.
Result<std::optional<ReceivedMessage>> receive_message(int fd, std::size_t payload_limit);

}  // namespace monarch
