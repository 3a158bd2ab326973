#include "supervisor/journal/journal_layout.h"

#include <charconv>

#include "supervisor/journal/record.h"
#include "transport/base/crc32c.h"
#include "transport/base/limits.h"
#include "transport/base/little_endian.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kSegmentPrefix = "journal.";
constexpr std::string_view kSegmentMagic = "MONJRNL\n";
constexpr std::string_view kSnapshotMagic = "MONSNAP\n";

// Segment header: magic 8 | version u32 | number u64 | first lsn u64 | crc u32 (of the rest) | seed u32. The seed is
// last, so that in a segment as between records the four bytes before a record are what it chains over.
constexpr std::size_t kLayoutVersionAt = 8;
constexpr std::size_t kNumberAt = 12;
constexpr std::size_t kFirstLsnAt = 20;
constexpr std::size_t kHeaderCrcAt = 28;
constexpr std::size_t kSeedAt = 32;

// Snapshot: magic 8 | version u32 | lsn u64 | chain u32 | term u64 | length u32 | bytes | crc u32.
constexpr std::size_t kSnapshotLsnAt = 12;
constexpr std::size_t kSnapshotChainAt = 20;
constexpr std::size_t kSnapshotTermAt = 24;
constexpr std::size_t kSnapshotLengthAt = 32;
constexpr std::size_t kSnapshotHeaderBytes = 36;

std::uint32_t header_crc(std::string_view bytes) {
  return crc32c(crc32c(0, bytes.substr(0, kHeaderCrcAt)), bytes.substr(kSeedAt, 4));
}

Error damaged(std::string_view what) { return Error{ErrorCode::kInvalid, std::string(what)}; }

}  // namespace

std::string segment_name(std::uint64_t number) {
  std::string digits = text(number);
  if (digits.size() < 4) digits.insert(0, 4 - digits.size(), '0');
  return text(kSegmentPrefix, digits);
}

std::optional<std::uint64_t> segment_number(std::string_view name) {
  if (!name.starts_with(kSegmentPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kSegmentPrefix.size());
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
  if (!whole || segment_name(number) != name) return std::nullopt;
  return number;
}

std::string encode_segment_header(const SegmentHeader& header) {
  std::string out(kSegmentMagic);
  little_endian::put(out, kLayoutVersion);
  little_endian::put(out, header.number);
  little_endian::put(out, header.first_lsn);
  const std::string seed = little_endian::bytes(header.seed);
  little_endian::put(out, crc32c(crc32c(0, out), seed));
  return out + seed;
}

Result<SegmentHeader> decode_segment_header(std::string_view bytes) {
  if (bytes.size() < kSegmentHeaderBytes) return damaged("the segment's header is cut short");
  if (!bytes.starts_with(kSegmentMagic)) return damaged("this is not a journal segment");
  if (header_crc(bytes) != little_endian::get<std::uint32_t>(bytes, kHeaderCrcAt)) {
    return damaged("the segment's header has a wrong checksum");
  }
  const auto version = little_endian::get<std::uint32_t>(bytes, kLayoutVersionAt);
  if (version != kLayoutVersion) {
    return Error{ErrorCode::kUnsupported,
                 text("the segment has format ", version, ", this build reads format ", kLayoutVersion)};
  }
  SegmentHeader header;
  header.number = little_endian::get<std::uint64_t>(bytes, kNumberAt);
  header.first_lsn = little_endian::get<std::uint64_t>(bytes, kFirstLsnAt);
  header.seed = little_endian::get<std::uint32_t>(bytes, kSeedAt);
  if (header.first_lsn == 0 || header.first_lsn > kLargestNumber) {
    return damaged(text("the segment claims to start with record ", header.first_lsn));
  }
  return header;
}

std::string encode_snapshot(const Snapshot& snapshot) {
  std::string out(kSnapshotMagic);
  out.reserve(kSnapshotHeaderBytes + snapshot.bytes.size() + 4);
  little_endian::put(out, kLayoutVersion);
  little_endian::put(out, snapshot.lsn);
  little_endian::put(out, snapshot.chain);
  little_endian::put(out, snapshot.term.value());
  little_endian::put(out, static_cast<std::uint32_t>(snapshot.bytes.size()));
  out.append(snapshot.bytes);
  little_endian::put(out, crc32c(0, out));
  return out;
}

Result<Snapshot> decode_snapshot(std::string_view bytes) {
  if (bytes.size() < kSnapshotHeaderBytes + 4) return damaged("the snapshot is cut short");
  if (!bytes.starts_with(kSnapshotMagic)) return damaged("this is not a snapshot");
  const std::string_view covered = bytes.substr(0, bytes.size() - 4);
  if (crc32c(0, covered) != little_endian::get<std::uint32_t>(bytes, covered.size())) {
    return damaged("the snapshot has a wrong checksum");
  }
  const auto version = little_endian::get<std::uint32_t>(bytes, kLayoutVersionAt);
  if (version != kLayoutVersion) {
    return Error{ErrorCode::kUnsupported,
                 text("the snapshot has format ", version, ", this build reads format ", kLayoutVersion)};
  }
  const std::string_view payload = covered.substr(kSnapshotHeaderBytes);
  if (little_endian::get<std::uint32_t>(bytes, kSnapshotLengthAt) != payload.size()) {
    return damaged("the snapshot has a wrong length");
  }
  Snapshot snapshot;
  snapshot.lsn = little_endian::get<std::uint64_t>(bytes, kSnapshotLsnAt);
  snapshot.chain = little_endian::get<std::uint32_t>(bytes, kSnapshotChainAt);
  snapshot.term = Term(little_endian::get<std::uint64_t>(bytes, kSnapshotTermAt));
  snapshot.bytes = std::string(payload);
  if (snapshot.lsn >= kLargestNumber || snapshot.term.value() >= kLargestNumber) {
    return damaged(text("the snapshot claims to be of record ", snapshot.lsn, ", term ", snapshot.term.value()));
  }
  return snapshot;
}

}  // namespace monarch
