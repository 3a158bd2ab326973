#include "supervisor/journal/record.h"

#include "transport/base/assert.h"
#include "transport/base/crc32c.h"
#include "transport/base/limits.h"
#include "transport/base/little_endian.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::uint32_t kMagic = 0x314A524DU;  // "MRJ1"
constexpr std::size_t kHeaderBytes = 52;
constexpr std::size_t kCrcBytes = 4;
static_assert(kHeaderBytes + kCrcBytes == kRecordOverhead);

// Offsets in the header.
constexpr std::size_t kLengthAt = 4;
constexpr std::size_t kTypeAt = 8;
constexpr std::size_t kVersionAt = 10;
constexpr std::size_t kTermAt = 12;
constexpr std::size_t kLsnAt = 20;
constexpr std::size_t kSyncedAt = 28;
constexpr std::size_t kWallAt = 36;
constexpr std::size_t kNowAt = 44;

}  // namespace

bool is_known(const Record& record) {
  if (record.version != kRecordVersion) return false;
  switch (record.type) {
    case RecordType::kTerm:
    case RecordType::kInput:
    case RecordType::kIntent:
    case RecordType::kDone:
    case RecordType::kVerdict:
    case RecordType::kClean:
    case RecordType::kEvent:
    case RecordType::kSnapshotTaken: return true;
  }
  return false;  // a number that another build wrote
}

bool is_skippable(const Record& record) { return (static_cast<std::uint16_t>(record.type) & kSkippableBit) != 0; }

std::string why_unknown(const Record& record) {
  if (record.version != kRecordVersion) {
    return text("the record has format ", record.version, ", this build reads format ", kRecordVersion);
  }
  return text("the record is of type ", static_cast<std::uint16_t>(record.type), ", which this build does not know");
}

EncodedRecord encode_record(const Record& record, std::uint32_t previous_crc) {
  MONARCH_ASSERT_BECAUSE(record.payload.size() <= limits::kJournalPayloadBytes, "a payload's size is checked before");
  EncodedRecord encoded;
  std::string& out = encoded.bytes;
  out.reserve(kRecordOverhead + record.payload.size());
  little_endian::put(out, kMagic);
  little_endian::put(out, static_cast<std::uint32_t>(record.payload.size()));
  little_endian::put(out, static_cast<std::uint16_t>(record.type));
  little_endian::put(out, record.version);
  little_endian::put(out, record.term.value());
  little_endian::put(out, record.lsn);
  little_endian::put(out, record.synced_lsn);
  little_endian::put(out, record.wall.nanoseconds_since_epoch);
  little_endian::put(out, record.now.since_boot().count_nanoseconds());
  out.append(record.payload);
  encoded.crc = record_crc(out, out.size() + kCrcBytes, previous_crc);
  little_endian::put(out, encoded.crc);
  return encoded;
}

std::uint32_t record_crc(std::string_view bytes, std::size_t size, std::uint32_t previous_crc) {
  return crc32c(crc32c(0, little_endian::bytes(previous_crc)), bytes.substr(0, size - kCrcBytes));
}

namespace {

std::variant<RecordClaim, RecordFault> claim(std::string_view bytes) {
  const std::string magic = little_endian::bytes(kMagic);
  if (bytes.substr(0, magic.size()) != std::string_view(magic).substr(0, bytes.size())) return RecordFault::kGarbage;
  if (bytes.size() < kHeaderBytes) return RecordFault::kIncomplete;
  const auto length = little_endian::get<std::uint32_t>(bytes, kLengthAt);
  if (length > limits::kJournalPayloadBytes) return RecordFault::kGarbage;
  RecordClaim claim;
  claim.size = kRecordOverhead + length;
  if (bytes.size() < claim.size) return RecordFault::kIncomplete;
  claim.lsn = little_endian::get<std::uint64_t>(bytes, kLsnAt);
  claim.synced_lsn = little_endian::get<std::uint64_t>(bytes, kSyncedAt);
  claim.stored_crc = little_endian::get<std::uint32_t>(bytes, claim.size - kCrcBytes);
  return claim;
}

}  // namespace

std::optional<RecordClaim> claimed_record(std::string_view bytes) {
  const auto claimed = claim(bytes);
  const auto* found = std::get_if<RecordClaim>(&claimed);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::variant<DecodedRecord, RecordFault> decode_record(std::string_view bytes, std::uint32_t previous_crc) {
  const auto claimed = claim(bytes);
  if (const auto* fault = std::get_if<RecordFault>(&claimed)) return *fault;
  const RecordClaim& found = *std::get_if<RecordClaim>(&claimed);
  if (record_crc(bytes, found.size, previous_crc) != found.stored_crc) return RecordFault::kChecksum;
  DecodedRecord decoded;
  decoded.crc = found.stored_crc;
  decoded.size = found.size;
  Record& record = decoded.record;
  record.type = static_cast<RecordType>(little_endian::get<std::uint16_t>(bytes, kTypeAt));
  record.version = little_endian::get<std::uint16_t>(bytes, kVersionAt);
  record.term = Term(little_endian::get<std::uint64_t>(bytes, kTermAt));
  record.lsn = found.lsn;
  record.synced_lsn = found.synced_lsn;
  record.wall.nanoseconds_since_epoch = little_endian::get<std::int64_t>(bytes, kWallAt);
  record.now = Instant::since_boot(Duration::nanoseconds(little_endian::get<std::int64_t>(bytes, kNowAt)));
  record.payload = std::string(bytes.substr(kHeaderBytes, found.size - kRecordOverhead));
  return decoded;
}

std::size_t find_record_magic(std::string_view bytes, std::size_t from) {
  return bytes.find(little_endian::bytes(kMagic), from);
}

}  // namespace monarch
