#pragma once

// How what vaults say to each other travels: a header, the message, and a piece's bytes as a frame of their own.
//
// Thread: pure functions.

#include <string>
#include <string_view>
#include <vector>

#include "transport/base/result.h"
#include "transport/wire/frame.h"
#include "transport/zmq/frame.h"
#include "worker/core/vault/vault_core.h"

namespace monarch::vault {

struct VaultFrames {
  FrameHeader header;
  std::vector<ZmqFrame> frames;  // the payload, and bytes where there are some
};
VaultFrames write_vault_message(const vault_event::Message& message, std::string bytes);

// As they came. kInvalid: they mean nothing.
struct VaultHeard {
  vault_event::Message message;
  std::string_view bytes;  // of a VaultPiece; within the frames
};
Result<VaultHeard> read_vault_message(const FrameHeader& header, const std::vector<ZmqFrame>& frames);

}  // namespace monarch::vault
