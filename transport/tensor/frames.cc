#include "transport/tensor/frames.h"

#include <algorithm>

#include "transport/base/little_endian.h"
#include "transport/base/text.h"
#include "transport/tensor/core/index.h"

namespace monarch::tensor {

namespace {

constexpr std::uint64_t kLongestAgain = 60'000;    // milliseconds; more are as many
constexpr std::uint32_t kFrameMagic = 0x4d54464c;  // "LFTM"
constexpr std::uint16_t kFrameFlags =
    kNewerThan | kKnowsIndex | kWithIndex | kWhole | kOther | kByKey | kAgain | kPinned;

}  // namespace

std::string encode_frame(const LinkFrame& frame) {
  std::string bytes;
  bytes.reserve(kFrameBytes);
  little_endian::put(bytes, kFrameMagic);
  little_endian::put(bytes, static_cast<std::uint16_t>(frame.kind));
  little_endian::put(bytes, frame.flags);
  little_endian::put(bytes, frame.slot);
  little_endian::put(bytes, std::uint16_t{0});
  little_endian::put(bytes, frame.rows);
  little_endian::put(bytes, frame.version.generation);
  little_endian::put(bytes, frame.version.number);
  little_endian::put(bytes, frame.offset);
  little_endian::put(bytes, frame.row);
  little_endian::put(bytes, frame.pitch);
  little_endian::put(bytes, frame.length);
  return bytes;
}

Result<LinkFrame> decode_frame(std::string_view bytes) {
  if (bytes.size() != kFrameBytes || little_endian::get<std::uint32_t>(bytes, 0) != kFrameMagic) {
    return Error{ErrorCode::kInvalid, "a frame that is none"};
  }
  LinkFrame frame;
  const auto kind = little_endian::get<std::uint16_t>(bytes, 4);
  frame.flags = little_endian::get<std::uint16_t>(bytes, 6);
  frame.slot = little_endian::get<std::uint16_t>(bytes, 8);
  const bool known = kind >= 1 && kind <= static_cast<std::uint16_t>(kLastFrameKind);
  if (!known || (frame.flags & ~kFrameFlags) != 0 || little_endian::get<std::uint16_t>(bytes, 10) != 0) {
    return Error{ErrorCode::kInvalid, text("a frame of kind ", kind, " that nobody knows")};
  }
  frame.kind = static_cast<FrameKind>(kind);
  frame.rows = little_endian::get<std::uint32_t>(bytes, 12);
  frame.version = {little_endian::get<std::uint64_t>(bytes, 16), little_endian::get<std::uint64_t>(bytes, 24)};
  frame.offset = little_endian::get<std::uint64_t>(bytes, 32);
  frame.row = little_endian::get<std::uint64_t>(bytes, 40);
  frame.pitch = little_endian::get<std::uint64_t>(bytes, 48);
  frame.length = little_endian::get<std::uint64_t>(bytes, 56);
  if (frame.length > kMostFrameLength && frame.kind != FrameKind::kRowsHere && frame.kind != FrameKind::kSlot) {
    return Error{ErrorCode::kInvalid, text("a frame with ", frame.length, " bytes behind it")};
  }
  return frame;
}

std::optional<Duration> time_to_come_again(const LinkFrame& frame) {
  if (frame.kind != FrameKind::kUnfit || (frame.flags & kAgain) == 0) return std::nullopt;
  return Duration::milliseconds(static_cast<std::int64_t>(std::min(frame.offset, kLongestAgain)));
}

Status check_rows(const LinkFrame& frame, std::uint64_t slot_bytes) {
  std::uint64_t end = 0;
  const bool counts = frame.rows > 0 && frame.row > 0 && (frame.rows == 1 || frame.pitch >= frame.row) &&
                      !__builtin_mul_overflow(std::uint64_t{frame.rows} - 1, frame.pitch, &end) &&
                      !__builtin_add_overflow(end, frame.row, &end) && !__builtin_add_overflow(end, frame.offset, &end);
  if (counts && frame.offset >= kSlotHeaderBytes && end <= slot_bytes) return {};
  return Error{ErrorCode::kInvalid,
               text(frame.rows, " rows of ", frame.row, " bytes, ", frame.pitch, " apart, from byte ", frame.offset,
                    " on are not within a slot of ", slot_bytes, " bytes")};
}

}  // namespace monarch::tensor
