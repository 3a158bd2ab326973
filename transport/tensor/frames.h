#pragma once

// Frames: what is said on a link after its hello: 64 bytes, little-endian, and behind them `length` bytes. A frame
// names offsets into slots, never addresses; what it asks for is within a slot, or it is none.
//
// Thread: pure functions.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/tensor/core/version.h"

namespace monarch::tensor {

inline constexpr std::size_t kFrameBytes = 64;
inline constexpr std::uint64_t kMostFrameLength = 80U << 20U;  // an index of 64 MiB, with its cards

enum class FrameKind : std::uint16_t {
  kHello = 1,  // both ways, in turn: a word of hello.h is behind it. `rows`: which of the reader's links for rows it
               // is, 0 for none of them; of the owner how many he may have
  kOpen,       // reader → registrar: a version after `version`, if `flags` has kNewerThan
  kOpened,     // registrar → reader: `version`; behind it index and cards, if `flags` has kWithIndex
  kUnknown,    // registrar → reader: it does not publish that yet; the names of what it does are behind it, in lines
  kOver,       // registrar → reader: nothing newer comes
  kUnfit,     // owner → the other: why not, behind it; the link ends. kOther: it is not who was meant. kAgain: it has
              // no place for it, and may have one in `offset` milliseconds
  kReading,   // reader → owner: it reads `version`
  kRead,      // reader → owner and registrar: it does not any more; kWhole: it has it
  kMapped,    // reader → owner: it keeps `version` mapped
  kUnmapped,  // the same: not any more
  kSlot,      // reader → owner, and back: memory `offset` of that slot has `version`, and `length` bytes; 0: nowhere
  kRows,      // reader → owner: `rows` rows of `row` bytes, `pitch` from one to the next, from `offset` on
  kRowsHere,  // owner → reader: they are behind it
  kWord,      // reader → owner, and back: the word of the slot, in `offset`, behind all rows before it
  kIndex,     // publisher → registrar: its index and its card are behind it
  kHolds,     // publisher → registrar: `version`
  kEnds,      // publisher → registrar
  kAllHold,   // registrar → publisher: `version`
  kRelease,   // registrar → publisher: nobody needs what it holds any more
  kVerbs,     // reader → owner, and back: a word of verbs/queue_words.h is behind it
  kWaits,  // registrar → reader: for which ranks it waits, in words behind it; nothing: for none that is late. First
           // of a group → member: the same of its call
  kMeet,   // member → first of a group: its call `version`; behind it a word of held_groups.h
  kMet,    // first → member: the answer to that call, behind it the same
  kLost,   // first → member: the epoch `version` is, and why, behind it; with member `rows`, counted from 1
};
inline constexpr auto kLastFrameKind = FrameKind::kLost;

inline constexpr std::uint16_t kNewerThan = 1;
inline constexpr std::uint16_t kKnowsIndex = 2;
inline constexpr std::uint16_t kWithIndex = 4;
inline constexpr std::uint16_t kWhole = 8;
inline constexpr std::uint16_t kOther = 16;
inline constexpr std::uint16_t kAgain = 64;
inline constexpr std::uint16_t kPinned =
    128;                                     // of kSlot: the reader's driver is to know the memory; it is one for that
inline constexpr std::uint16_t kByKey = 32;  // of kSlot: its memory is READ; the key to that comes in `rows`

struct LinkFrame {
  FrameKind kind = FrameKind::kOpen;
  std::uint16_t flags = 0;
  std::uint16_t slot = 0;
  VersionId version;
  std::uint64_t offset = 0;
  std::uint64_t row = 0;
  std::uint32_t rows = 0;
  std::uint64_t pitch = 0;
  std::uint64_t length = 0;  // of what is behind it; of kSlot that of the slot
  bool operator==(const LinkFrame&) const = default;
};

std::string encode_frame(const LinkFrame& frame);
// kInvalid: it is none; the message says why. `bytes`: kFrameBytes of them.
Result<LinkFrame> decode_frame(std::string_view bytes);
// Of a kUnfit: when there may be a place; nothing: it is no matter of places.
std::optional<Duration> time_to_come_again(const LinkFrame& frame);
// kInvalid: the rows that it asks for are not within a slot of so many bytes, behind its header.
Status check_rows(const LinkFrame& frame, std::uint64_t slot_bytes);

}  // namespace monarch::tensor
