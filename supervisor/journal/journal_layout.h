#pragma once

// The files of a journal: segments `journal.NNNN`, each a header and records, and one snapshot `snap`. The header says
// which LSN the segment starts with, and the crc of the record before it, so that a segment's place is proved by its
// content and not by its name. A later segment may start before the end of an earlier one; what both hold is the same:
// so a writer goes on after a failed write, and a supervisor after a torn one.
//
// Thread: values and pure functions.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/base/ids.h"
#include "transport/base/result.h"

namespace monarch {

// Of segments and snapshots, and of the state that a snapshot holds: raised with kRecordVersion, so that a journal of
// another format is refused by its first header and not by a record somewhere in it.
inline constexpr std::uint32_t kLayoutVersion = 36;

inline constexpr std::string_view kSnapshotName = "snap";
inline constexpr std::string_view kSnapshotTemporaryName = "snap.tmp";

// "journal.0001"; more digits when they are needed.
std::string segment_name(std::uint64_t number);
// Nothing for a name that is not a segment's.
std::optional<std::uint64_t> segment_number(std::string_view name);

struct SegmentHeader {
  std::uint64_t number = 0;
  std::uint64_t first_lsn = 1;  // all before it was on disk when the segment was made
  std::uint32_t seed = 0;       // crc of record first_lsn - 1; 0 for the first of all
};

inline constexpr std::size_t kSegmentHeaderBytes = 36;
std::string encode_segment_header(const SegmentHeader& header);
// kInvalid: damaged or torn. kUnsupported: of another format; the message names both.
Result<SegmentHeader> decode_segment_header(std::string_view bytes);

struct Snapshot {
  std::uint64_t lsn = 0;    // it holds the effect of every record up to here
  std::uint32_t chain = 0;  // crc of that record
  Term term;
  std::string bytes;  // the core's, opaque
};

std::string encode_snapshot(const Snapshot& snapshot);
// kInvalid: damaged. kUnsupported: of another format; the message names both.
Result<Snapshot> decode_snapshot(std::string_view bytes);

}  // namespace monarch
