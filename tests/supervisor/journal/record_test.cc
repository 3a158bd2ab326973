#include "supervisor/journal/record.h"

#include <gtest/gtest.h>

#include "supervisor/journal/journal_layout.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

Record sample() {
  Record record;
  record.type = RecordType::kIntent;
  record.term = Term(3);
  record.lsn = 7;
  record.synced_lsn = 5;
  record.wall = {1'790'000'000'000'000'001};
  record.now = Instant::since_boot(Duration::nanoseconds(12'345));
  record.payload = std::string("a\0b\xff", 4);
  return record;
}

TEST(Record, ComesBackAsItWent) {
  const Record record = sample();
  const EncodedRecord encoded = encode_record(record, 42);
  EXPECT_EQ(encoded.bytes.size(), kRecordOverhead + record.payload.size());
  const auto decoded = decode_record(encoded.bytes + "more", 42);
  const auto* found = std::get_if<DecodedRecord>(&decoded);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->size, encoded.bytes.size());
  EXPECT_EQ(found->crc, encoded.crc);
  EXPECT_EQ(found->record.type, record.type);
  EXPECT_EQ(found->record.version, kRecordVersion);
  EXPECT_EQ(found->record.term, record.term);
  EXPECT_EQ(found->record.lsn, record.lsn);
  EXPECT_EQ(found->record.synced_lsn, record.synced_lsn);
  EXPECT_EQ(found->record.wall, record.wall);
  EXPECT_EQ(found->record.now, record.now);
  EXPECT_EQ(found->record.payload, record.payload);
}

TEST(Record, TakesTheLargestPayload) {
  Record record = sample();
  record.payload.assign(limits::kJournalPayloadBytes, 'x');
  const auto decoded = decode_record(encode_record(record, 0).bytes, 0);
  ASSERT_NE(std::get_if<DecodedRecord>(&decoded), nullptr);
}

TEST(Record, CutAtAnyByteIsIncomplete) {
  const std::string bytes = encode_record(sample(), 42).bytes;
  for (std::size_t length = 1; length < bytes.size(); ++length) {
    const auto decoded = decode_record(bytes.substr(0, length), 42);
    const auto* fault = std::get_if<RecordFault>(&decoded);
    ASSERT_NE(fault, nullptr) << length;
    EXPECT_EQ(*fault, RecordFault::kIncomplete) << length;
  }
}

TEST(Record, AnyFlippedBitIsSeen) {
  const std::string bytes = encode_record(sample(), 42).bytes;
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string broken = bytes;
    broken[bit / 8] = static_cast<char>(broken[bit / 8] ^ (1 << (bit % 8)));
    const auto decoded = decode_record(broken, 42);
    EXPECT_NE(std::get_if<RecordFault>(&decoded), nullptr) << bit;
  }
}

TEST(Record, FollowsOnlyItsOwnPredecessor) {
  const auto decoded = decode_record(encode_record(sample(), 42).bytes, 43);
  const auto* fault = std::get_if<RecordFault>(&decoded);
  ASSERT_NE(fault, nullptr);
  EXPECT_EQ(*fault, RecordFault::kChecksum);
}

TEST(Record, KnowsItsTypesAndWhichMayBePassedOver) {
  Record record = sample();
  EXPECT_TRUE(is_known(record));
  EXPECT_FALSE(is_skippable(record));
  record.type = RecordType::kEvent;
  EXPECT_TRUE(is_known(record));
  EXPECT_TRUE(is_skippable(record));
  record.version = kRecordVersion - 1;
  EXPECT_FALSE(is_known(record));
  EXPECT_EQ(why_unknown(record),
            text("the record has format ", kRecordVersion - 1, ", this build reads format ", kRecordVersion));
  record.version = kRecordVersion;
  record.type = static_cast<RecordType>(77);
  EXPECT_FALSE(is_known(record));
  EXPECT_FALSE(is_skippable(record));
  EXPECT_EQ(why_unknown(record), "the record is of type 77, which this build does not know");
}

TEST(JournalLayout, NamesSegmentsInOneWayOnly) {
  EXPECT_EQ(segment_name(1), "journal.0001");
  EXPECT_EQ(segment_name(12345), "journal.12345");
  EXPECT_EQ(segment_number("journal.0001"), 1U);
  EXPECT_EQ(segment_number("journal.12345"), 12345U);
  for (const char* wrong : {"journal.1", "journal.00001", "journal.", "journal.000x", "journal.-001", "snap", "",
                            "journal.99999999999999999999999", "journal.0001.tmp"}) {
    EXPECT_EQ(segment_number(wrong), std::nullopt) << wrong;
  }
}

TEST(JournalLayout, HeadersAndSnapshotsComeBackAndAnyFlippedBitIsSeen) {
  const std::string header = encode_segment_header({.number = 9, .first_lsn = 100, .seed = 77});
  ASSERT_EQ(header.size(), kSegmentHeaderBytes);
  const auto read = decode_segment_header(header);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->number, 9U);
  EXPECT_EQ(read->first_lsn, 100U);
  EXPECT_EQ(read->seed, 77U);
  const std::string snapshot = encode_snapshot({.lsn = 5, .chain = 6, .term = Term(7), .bytes = "state"});
  const auto back = decode_snapshot(snapshot);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->lsn, 5U);
  EXPECT_EQ(back->chain, 6U);
  EXPECT_EQ(back->term, Term(7));
  EXPECT_EQ(back->bytes, "state");
  const auto flip = [](std::string bytes, std::size_t bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    return bytes;
  };
  for (std::size_t bit = 0; bit < header.size() * 8; ++bit) EXPECT_FALSE(decode_segment_header(flip(header, bit)).ok());
  for (std::size_t bit = 0; bit < snapshot.size() * 8; ++bit) EXPECT_FALSE(decode_snapshot(flip(snapshot, bit)).ok());
  for (std::size_t cut = 0; cut < snapshot.size(); ++cut) EXPECT_FALSE(decode_snapshot(snapshot.substr(0, cut)).ok());
}

}  // namespace
}  // namespace monarch
