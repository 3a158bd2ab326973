#include "supervisor/journal/journal_contents.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "supervisor/journal/recover.h"
#include "tests/supervisor/journal/fake_journal_files.h"
#include "tests/supervisor/journal/journal_story.h"
#include "transport/base/crc32c.h"
#include "transport/base/little_endian.h"
#include "transport/base/sanitizers.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

using testing::FakeJournalFiles;

JournalImage image_of(FakeJournalFiles& files) {
  JournalImage image;
  for (const auto& [name, inode] : files.names()) {
    if (name == kSnapshotName) image.snapshot = inode->bytes;
    if (segment_number(name)) image.segments.push_back({name, inode->bytes});
  }
  return image;
}

// One segment, records 1 (TERM) to 13, each batch of one record.
JournalImage one_segment() {
  FakeJournalFiles files;
  testing::live(files, {.batches = 12, .per_batch = 1, .writer = {}});
  return image_of(files);
}

// Several segments, a snapshot with history before it and records after it, batches of two.
JournalImage with_snapshot() {
  FakeJournalFiles files;
  testing::live(files, {.batches = 15, .per_batch = 2, .writer = {.segment_records = 6, .snapshot_every = 12}});
  return image_of(files);
}

// Where each record of the last segment starts, and where the segment ends.
std::vector<std::size_t> record_offsets(const std::string& bytes) {
  std::vector<std::size_t> offsets{kSegmentHeaderBytes};
  while (offsets.back() < bytes.size()) {
    offsets.push_back(offsets.back() + claimed_record(std::string_view(bytes).substr(offsets.back()))->size);
  }
  return offsets;
}

TEST(JournalContents, OfNothingAreEmptyAndClean) {
  const JournalContents contents = parse_journal({});
  EXPECT_EQ(contents.end, JournalEnd::kClean);
  EXPECT_EQ(contents.last_lsn, 0U);
  EXPECT_EQ(contents.last_term, Term(0));
  EXPECT_TRUE(contents.records.empty());
}

TEST(JournalContents, ChainAcrossSegmentsAndSnapshot) {
  const JournalImage image = with_snapshot();
  ASSERT_TRUE(image.snapshot.has_value());
  ASSERT_GE(image.segments.size(), 3U);
  const JournalContents contents = parse_journal(image);
  ASSERT_EQ(contents.end, JournalEnd::kClean) << contents.describe_end();
  ASSERT_FALSE(contents.history.empty());
  ASSERT_FALSE(contents.records.empty());
  testing::expect_only_truth(contents);
}

TEST(JournalContents, SnapshotAndReplayEqualFullReplay) {
  const JournalContents both = parse_journal(with_snapshot());
  FakeJournalFiles files;
  testing::live(files, {.batches = 15, .per_batch = 2, .writer = {.segment_records = 6, .snapshot_every = 1'000'000}});
  const JournalContents full = parse_journal(image_of(files));
  ASSERT_TRUE(both.snapshot.has_value());
  ASSERT_FALSE(full.snapshot.has_value());
  // The journal's own records about snapshots take LSNs too: compare the inputs by their order.
  const auto inputs = [](const JournalContents& contents) {
    return std::ranges::count(testing::replay(contents), '\n');
  };
  EXPECT_EQ(inputs(both), 30);
  EXPECT_EQ(inputs(full), 30);
  // The history that is left and the records say the same as the snapshot and the records.
  std::string by_records;
  for (const auto* records : {&both.history, &both.records}) {
    for (const Record& record : *records) {
      if (record.type == RecordType::kInput) by_records += text(record.lsn, '=', record.payload, '\n');
    }
  }
  EXPECT_EQ(testing::replay(both), by_records);
}

TEST(JournalContents, TruncatedAtAnyByteAreAValidPrefix) {
  for (const JournalImage& whole : {one_segment(), with_snapshot()}) {
    const JournalContents all = parse_journal(whole);
    const std::string& last = whole.segments.back().bytes;
    const std::vector<std::size_t> offsets = record_offsets(last);
    const std::uint64_t records_here = offsets.size() - 1;
    for (std::size_t length = 0; length < last.size(); ++length) {
      JournalImage cut = whole;
      cut.segments.back().bytes.resize(length);
      const JournalContents contents = parse_journal(cut);
      // The snapshot's own segment is what the snapshot stands on: without its header there is nothing to go on from
      // but what is before it.
      const auto kept = static_cast<std::uint64_t>(
          std::count_if(offsets.begin() + 1, offsets.end(), [&](std::size_t end) { return end <= length; }));
      ASSERT_TRUE(contents.usable()) << length << ' ' << contents.describe_end();
      ASSERT_EQ(contents.last_lsn, all.last_lsn - records_here + kept) << length;
      testing::expect_only_truth(contents);
      const bool at_boundary = std::ranges::find(offsets, length) != offsets.end();
      ASSERT_EQ(contents.end, at_boundary ? JournalEnd::kClean : JournalEnd::kTorn) << length;
      if (!at_boundary) {
        ASSERT_EQ(contents.end_file, whole.segments.back().name);
      }
      if (!at_boundary) {
        ASSERT_LE(contents.end_offset, length);
      }
    }
  }
}

TEST(JournalContents, TruncatedInAnEarlierSegmentAreRefusedOrCoveredByTheSnapshot) {
  const JournalImage whole = with_snapshot();
  const std::string state = testing::replay(parse_journal(whole));
  for (std::size_t which = 0; which + 1 < whole.segments.size(); ++which) {
    for (std::size_t length = 0; length < whole.segments[which].bytes.size(); ++length) {
      JournalImage cut = whole;
      cut.segments[which].bytes.resize(length);
      const JournalContents contents = parse_journal(cut);
      if (contents.usable()) {
        testing::expect_only_truth(contents);
        ASSERT_EQ(testing::replay(contents), state);
      } else {
        ASSERT_EQ(contents.end, JournalEnd::kDamaged);
        ASSERT_FALSE(contents.why.empty());
      }
    }
  }
}

TEST(JournalContents, AFlippedBitInTheMiddleIsRefusedWithItsPlaceAndInTheLastRecordCut) {
  const JournalImage whole = one_segment();
  const std::string& bytes = whole.segments.back().bytes;
  const std::vector<std::size_t> offsets = record_offsets(bytes);
  const std::size_t last_record = offsets[offsets.size() - 2];
  const std::uint64_t last_lsn = offsets.size() - 1;
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    JournalImage flipped = whole;
    char& byte = flipped.segments.back().bytes[bit / 8];
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
    const JournalContents contents = parse_journal(flipped);
    testing::expect_only_truth(contents);
    ASSERT_FALSE(contents.why.empty());
    ASSERT_EQ(contents.end_file, "journal.0001");
    if (bit / 8 >= last_record) {
      ASSERT_EQ(contents.end, JournalEnd::kTorn) << bit;
      ASSERT_EQ(contents.last_lsn, last_lsn - 1) << bit;
      ASSERT_EQ(contents.end_offset, last_record) << bit;
    } else {
      ASSERT_EQ(contents.end, JournalEnd::kDamaged) << bit;
      const auto place = bit / 8 < kSegmentHeaderBytes ? 0 : *std::prev(std::ranges::upper_bound(offsets, bit / 8));
      ASSERT_EQ(contents.end_offset, place) << bit;
    }
  }
}

TEST(JournalContents, AFlippedBitAnywhereNeverMakesAWrongRecord) {
  constexpr std::size_t kStep = kSanitized ? 5 : 1;  // each bit of a byte in its turn
  const JournalImage whole = with_snapshot();
  const JournalContents all = parse_journal(whole);
  const std::string state = testing::replay(all);
  for (std::size_t which = 0; which < whole.segments.size(); ++which) {
    for (std::size_t bit = 0; bit < whole.segments[which].bytes.size() * 8; bit += kStep) {
      JournalImage flipped = whole;
      char& byte = flipped.segments[which].bytes[bit / 8];
      byte = static_cast<char>(byte ^ (1 << (bit % 8)));
      const JournalContents contents = parse_journal(flipped);
      if (!contents.usable()) continue;
      testing::expect_only_truth(contents);
      const bool less = contents.last_lsn < all.last_lsn || contents.history.size() < all.history.size();
      ASSERT_TRUE(less) << "a flip went unseen in " << flipped.segments[which].name << " bit " << bit;
      if (contents.last_lsn < all.last_lsn) {
        ASSERT_EQ(contents.end, JournalEnd::kTorn);
        ASSERT_GE(contents.last_lsn, all.proven_lsn);
      } else {
        ASSERT_EQ(testing::replay(contents), state);
      }
    }
  }
  for (std::size_t bit = 0; bit < whole.snapshot->size() * 8; bit += kStep) {
    JournalImage flipped = whole;
    char& byte = (*flipped.snapshot)[bit / 8];
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
    const JournalContents contents = parse_journal(flipped);
    ASSERT_EQ(contents.end, JournalEnd::kDamaged);
    ASSERT_EQ(contents.end_file, kSnapshotName);
  }
}

TEST(JournalContents, AHoleInAnUnsyncedBatchIsATornTail) {
  // One batch of four, of which the second record did not reach the disk and the later ones did.
  FakeJournalFiles files;
  testing::live(files, {.batches = 1, .per_batch = 4, .writer = {}});
  JournalImage image = image_of(files);
  std::string& bytes = image.segments.back().bytes;
  const std::vector<std::size_t> offsets = record_offsets(bytes);
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(offsets[2]),
            bytes.begin() + static_cast<std::ptrdiff_t>(offsets[3]), '\0');
  const JournalContents contents = parse_journal(image);
  EXPECT_EQ(contents.end, JournalEnd::kTorn) << contents.describe_end();
  EXPECT_EQ(contents.last_lsn, 2U);
}

TEST(JournalContents, AMissingSegmentIsRefusedUnlessTheSnapshotCoversIt) {
  const JournalImage whole = with_snapshot();
  const std::string state = testing::replay(parse_journal(whole));
  for (std::size_t which = 0; which + 1 < whole.segments.size(); ++which) {
    JournalImage without = whole;
    without.segments.erase(without.segments.begin() + static_cast<std::ptrdiff_t>(which));
    const JournalContents contents = parse_journal(without);
    if (contents.usable()) {
      EXPECT_EQ(testing::replay(contents), state);
    }
    testing::expect_only_truth(contents);
  }
  JournalImage without_snapshot = whole;
  without_snapshot.snapshot.reset();
  without_snapshot.segments.erase(without_snapshot.segments.begin());
  EXPECT_EQ(parse_journal(without_snapshot).end, JournalEnd::kDamaged);
  JournalImage only_snapshot;
  only_snapshot.snapshot = whole.snapshot;
  EXPECT_EQ(parse_journal(only_snapshot).end, JournalEnd::kDamaged);
}

TEST(JournalContents, SegmentsOfAnotherJournalAreRefused) {
  JournalImage mixed = with_snapshot();
  FakeJournalFiles files;
  testing::live(files, {.batches = 1, .per_batch = 1, .writer = {}});
  testing::live(files, {.batches = 14, .per_batch = 2, .writer = {.segment_records = 6, .snapshot_every = 12}});
  mixed.segments.back() = image_of(files).segments.back();
  EXPECT_EQ(parse_journal(mixed).end, JournalEnd::kDamaged);
}

TEST(JournalContents, AnUnknownTypeIsRefusedUnlessItMayBePassedOver) {
  const auto with_type = [](std::uint16_t type, std::uint16_t version) {
    Record record;
    record.type = static_cast<RecordType>(type);
    record.version = version;
    record.term = Term(1);
    record.lsn = 1;
    const EncodedRecord first = encode_record(record, 0);
    record.type = RecordType::kInput;
    record.version = kRecordVersion;
    record.lsn = 2;
    record.payload = testing::payload_of(2);
    JournalImage image;
    image.segments.push_back({"journal.0001", encode_segment_header({.number = 1, .first_lsn = 1, .seed = 0}) +
                                                  first.bytes + encode_record(record, first.crc).bytes});
    return parse_journal(image);
  };
  EXPECT_EQ(with_type(99, kRecordVersion).end, JournalEnd::kUnsupported);
  const auto input = static_cast<std::uint16_t>(RecordType::kInput);
  EXPECT_EQ(with_type(input, kRecordVersion).end, JournalEnd::kClean);
  EXPECT_EQ(with_type(input, kRecordVersion + 1).end, JournalEnd::kUnsupported);
  const JournalContents older = with_type(input, 1);
  EXPECT_EQ(older.end, JournalEnd::kUnsupported);
  EXPECT_EQ(older.describe_end(),
            text("journal.0001 at byte 36: the record has format 1, this build reads format ", kRecordVersion));
  const JournalContents passed = with_type(kSkippableBit | 99U, kRecordVersion + 1);
  EXPECT_EQ(passed.end, JournalEnd::kClean);
  ASSERT_EQ(passed.records.size(), 1U);
  EXPECT_EQ(passed.records.front().lsn, 2U);
  EXPECT_EQ(passed.last_lsn, 2U);
}

// As a build with another format writes it: its number in the header, and the checksum right.
std::string with_format(std::string bytes, std::uint32_t format, bool segment) {
  std::string number;
  little_endian::put(number, format);
  bytes.replace(8, 4, number);
  std::string crc;
  if (segment) {
    little_endian::put(crc, crc32c(crc32c(0, bytes.substr(0, 28)), bytes.substr(32, 4)));
    return bytes.replace(28, 4, crc);
  }
  little_endian::put(crc, crc32c(0, bytes.substr(0, bytes.size() - 4)));
  return bytes.replace(bytes.size() - 4, 4, crc);
}

TEST(JournalContents, AJournalOfAnotherFormatIsRefusedByItsFirstHeaderAndBothFormatsAreNamed) {
  for (const std::uint32_t format : {1U, kLayoutVersion + 1}) {
    FakeJournalFiles files;
    testing::live(files, {.batches = 2, .per_batch = 2, .writer = {}});
    JournalImage image = image_of(files);
    image.segments.front().bytes = with_format(image.segments.front().bytes, format, true);
    const JournalContents contents = parse_journal(image);
    EXPECT_EQ(contents.end, JournalEnd::kUnsupported);
    files.bytes_of("journal.0001") = image.segments.front().bytes;
    const auto recovered = recover_journal(files, {});
    ASSERT_FALSE(recovered.ok());
    EXPECT_EQ(recovered.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(recovered.error().message, text("the journal cannot be continued: ", contents.describe_end()));
    EXPECT_TRUE(contents.records.empty());
    EXPECT_EQ(contents.describe_end(), text("journal.0001 at byte 0: the segment has format ", format,
                                            ", this build reads format ", kLayoutVersion));

    JournalImage snapshot = with_snapshot();
    snapshot.snapshot = with_format(*snapshot.snapshot, format, false);
    EXPECT_EQ(parse_journal(snapshot).end, JournalEnd::kUnsupported);
    EXPECT_EQ(parse_journal(snapshot).describe_end(),
              text("snap at byte 0: the snapshot has format ", format, ", this build reads format ", kLayoutVersion));
  }
}

}  // namespace
}  // namespace monarch
