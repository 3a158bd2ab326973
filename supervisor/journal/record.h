#pragma once

// The record of a journal, and its bytes. A record is
//
//   magic u32 | payload length u32 | type u16 | version u16 | term u64 | lsn u64 | synced lsn u64 | wall ns i64 | now
//   ns i64 | payload | crc u32
//
// in little endian; the crc covers the crc of the record before it and everything of this one but itself, so that
// records can be neither dropped, reordered nor exchanged unseen. `synced_lsn` is the last record that was known to be
// on disk when this one was written: it tells damage (what it vouches for is broken) from a torn tail.
//
// Thread: values and pure functions.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "transport/base/ids.h"
#include "transport/base/time.h"

namespace monarch {

// A reader that does not know a type refuses the journal, unless the type carries the skippable bit (J5).
inline constexpr std::uint16_t kSkippableBit = 0x8000;

enum class RecordType : std::uint16_t {
  kTerm = 1,                // a supervisor's first record: its term begins
  kInput = 2,               // an event that the core was fed, to be replayed
  kIntent = 3,              // reserved: an act on the outside is about to be tried (J2)
  kDone = 4,                // reserved: its outcome
  kVerdict = 5,             // how the job ended
  kClean = 6,               // the supervisor left in order; nothing follows in this term
  kEvent = 0x8001,          // what users are shown; state does not depend on it
  kSnapshotTaken = 0x8002,  // the journal's own: a snapshot up to an LSN is on disk
};

// Of payloads: raised with any change to a type that supervisor/journal/core_fields.h names, since a replay by another
// version of them would be another history.
inline constexpr std::uint16_t kRecordVersion = 36;

struct Record {
  RecordType type = RecordType::kInput;
  std::uint16_t version = kRecordVersion;
  Term term;
  std::uint64_t lsn = 0;  // 1, 2, 3 … without a gap
  std::uint64_t synced_lsn = 0;
  WallTime wall;  // for display
  Instant now;    // the core's `now`
  std::string payload;
};

inline constexpr std::size_t kRecordOverhead = 56;
// No LSN or term of a real journal comes near; a larger one is damage, and the next one cannot overflow.
inline constexpr std::uint64_t kLargestNumber = std::uint64_t{1} << 62U;

bool is_known(const Record& record);            // this build knows its type and version
bool is_skippable(const Record& record);        // and one that it does not know may be passed over
std::string why_unknown(const Record& record);  // of one that is neither

struct EncodedRecord {
  std::string bytes;
  std::uint32_t crc = 0;  // what the next record chains over
};

// The payload is at most limits::kJournalPayloadBytes: the caller has checked.
EncodedRecord encode_record(const Record& record, std::uint32_t previous_crc);

enum class RecordFault : std::uint8_t {
  kIncomplete,  // the bytes end inside a record
  kGarbage,     // no record starts here
  kChecksum,    // one does, and its bytes or its predecessor are not what was written
};

struct DecodedRecord {
  Record record;
  std::uint32_t crc = 0;
  std::size_t size = 0;
};

// The record at the front of `bytes`, which is not empty. Total: any bytes give an answer.
std::variant<DecodedRecord, RecordFault> decode_record(std::string_view bytes, std::uint32_t previous_crc);

// What the front of `bytes` claims to be, its checksum unseen; nothing if no record starts here or it does not fit.
struct RecordClaim {
  std::uint64_t lsn = 0;
  std::uint64_t synced_lsn = 0;
  std::uint32_t stored_crc = 0;
  std::size_t size = 0;
};
std::optional<RecordClaim> claimed_record(std::string_view bytes);

// The checksum that the record of `size` bytes at the front of `bytes` should carry.
std::uint32_t record_crc(std::string_view bytes, std::size_t size, std::uint32_t previous_crc);

// Where the next record may start at or after `from`; npos if nowhere.
std::size_t find_record_magic(std::string_view bytes, std::size_t from);

}  // namespace monarch
