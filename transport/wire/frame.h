#pragma once

// Frame: a message on the wire between any two of our processes: a header of fixed size that says what it is and whom
// it concerns, and a payload. The header is little-endian and starts with a magic number; who receives it compares job,
// term and generation in one place and drops what is stale. What a payload means says its message (transport/messages).
//
// Thread: values.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "transport/base/ids.h"
#include "transport/base/result.h"

namespace monarch {

inline constexpr std::uint16_t kFrameVersion = 1;
inline constexpr std::size_t kFrameHeaderBytes = 72;

struct FrameHeader {
  std::uint16_t version = kFrameVersion;
  std::uint16_t type = 0;
  JobUuid job = {};
  Term term = {};
  Incarnation process = {};
  std::uint64_t seq = 0;   // counts the sender's frames on one link
  std::uint64_t call = 0;  // binds an answer to its request; 0 is none
  auto operator<=>(const FrameHeader&) const = default;
};

struct Frame {
  FrameHeader header;
  std::string payload;
  auto operator<=>(const Frame&) const = default;
};

std::string encode_header(const FrameHeader& header);

// kInvalid unless it is exactly one header of ours; kUnsupported when it is one of another version.
Result<FrameHeader> decode_header(std::string_view bytes);

// Header and payload in one piece.
std::string encode_frame(const Frame& frame);
Result<Frame> decode_frame(std::string_view bytes, std::size_t payload_limit);

}  // namespace monarch
