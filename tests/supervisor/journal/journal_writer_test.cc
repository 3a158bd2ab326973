#include "supervisor/journal/journal_writer.h"

#include <gtest/gtest.h>

#include "tests/supervisor/journal/fake_journal_files.h"
#include "tests/supervisor/journal/journal_story.h"

namespace monarch {
namespace {

using testing::Call;
using testing::DataLeft;
using testing::FakeJournalFiles;
using testing::NamesLeft;

constexpr Term kTerm{1};

std::unique_ptr<JournalWriter> new_writer(JournalFiles& files, const JournalWriterOptions& options = {}) {
  auto writer = JournalWriter::create(files, JournalContents{}, options);
  EXPECT_TRUE(writer.ok());
  return std::move(*writer);
}

void append_inputs(JournalWriter& writer, int count) {
  for (int i = 0; i < count; ++i) ASSERT_TRUE(writer.append(testing::input(kTerm, writer.last_lsn() + 1)).ok());
}

JournalContents read(JournalFiles& files) {
  auto contents = read_journal(files);
  EXPECT_TRUE(contents.ok());
  return std::move(*contents);
}

// Fails the calls of one kind `count` times from now on.
void fail_calls(FakeJournalFiles& files, Call call, Errno failure, int count) {
  files.fault = [=, left = count](Call made, const std::string&) mutable {
    return made == call && left-- > 0 ? failure : 0;
  };
}

TEST(JournalWriter, SyncsABatchOnceAndAcknowledgesAllOfIt) {
  FakeJournalFiles files;
  const auto writer = new_writer(files);
  append_inputs(*writer, 3);
  EXPECT_EQ(writer->durable_lsn(), 0U);
  EXPECT_EQ(files.calls(), 0U);
  EXPECT_EQ(writer->flush(), JournalHealth::kGood);
  EXPECT_EQ(writer->durable_lsn(), 3U);
  append_inputs(*writer, 5);
  const std::size_t before = files.calls();
  EXPECT_EQ(writer->flush(), JournalHealth::kGood);
  EXPECT_EQ(files.calls() - before, 2U) << "one write, one sync";
  EXPECT_EQ(read(*files.after_crash(DataLeft::kSyncedOnly, NamesLeft::kSyncedOnly)).last_lsn, 8U);
}

TEST(JournalWriter, RefusesWhatIsTooLargeAndLeavesNoTraceOfIt) {
  FakeJournalFiles files;
  const auto writer = new_writer(files);
  AppendRecord large = testing::input(kTerm, 1);
  large.payload.assign(limits::kJournalPayloadBytes + 1, 'x');
  const auto refused = writer->append(large);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  append_inputs(*writer, 1);
  EXPECT_EQ(writer->last_lsn(), 1U);
  large.payload.assign(limits::kSnapshotBytes + 1, 'x');
  EXPECT_EQ(writer->take_snapshot(large.payload, {.term = kTerm}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(writer->flush(), JournalHealth::kGood);
  testing::expect_only_truth(read(files));
}

// J4, for each call that can fail while appending, with every amount of a short write.
TEST(JournalWriter, LeavesAPoisonedFileForAFreshSegment) {
  for (const Call call : {Call::kWrite, Call::kSync}) {
    for (const Errno failure : {EIO, ENOSPC}) {
      for (const std::size_t partial : {0U, 1U, 30U, 60U, 100U, 10'000U}) {
        FakeJournalFiles files;
        const auto writer = new_writer(files);
        append_inputs(*writer, 3);
        ASSERT_EQ(writer->flush(), JournalHealth::kGood);
        append_inputs(*writer, 2);
        files.bytes_before_fault = partial;
        fail_calls(files, call, failure, 1);
        ASSERT_EQ(writer->flush(), JournalHealth::kGood);
        EXPECT_EQ(writer->durable_lsn(), 5U);
        append_inputs(*writer, 1);
        ASSERT_EQ(writer->flush(), JournalHealth::kGood);
        EXPECT_EQ(files.names().size(), 2U);
        const std::size_t poisoned_size = files.bytes_of("journal.0001").size();
        const auto left = files.after_crash(DataLeft::kSyncedOnly, NamesLeft::kSyncedOnly);
        for (JournalFiles* each : {static_cast<JournalFiles*>(&files), static_cast<JournalFiles*>(left.get())}) {
          const JournalContents contents = read(*each);
          EXPECT_EQ(contents.end, JournalEnd::kClean) << contents.describe_end();
          EXPECT_EQ(contents.last_lsn, 6U);
          testing::expect_only_truth(contents);
        }
        EXPECT_EQ(files.bytes_of("journal.0001").size(), poisoned_size) << "a poisoned file is never written again";
      }
    }
  }
}

TEST(JournalWriter, WithoutSpaceIsStuckThenGoesOnWithoutLoss) {
  for (const Errno failure : {ENOSPC, EDQUOT, EROFS}) {
    FakeJournalFiles files;
    const auto writer = new_writer(files);
    append_inputs(*writer, 3);
    ASSERT_EQ(writer->flush(), JournalHealth::kGood);
    files.bytes_before_fault = 50;
    fail_calls(files, Call::kWrite, failure, 1'000'000);
    append_inputs(*writer, 2);
    EXPECT_EQ(writer->flush(), JournalHealth::kStuck);
    EXPECT_EQ(writer->flush(), JournalHealth::kStuck);
    EXPECT_EQ(writer->durable_lsn(), 3U);
    EXPECT_NE(writer->trouble().message.find("journal."), std::string::npos);
    EXPECT_EQ(read(files).last_lsn, 3U);
    EXPECT_FALSE(writer->take_snapshot("state", {.term = kTerm}).ok());
    append_inputs(*writer, 1);
    fail_calls(files, Call::kWrite, failure, 0);
    EXPECT_EQ(writer->flush(), JournalHealth::kGood);
    EXPECT_EQ(writer->durable_lsn(), 6U);
    const JournalContents contents = read(files);
    EXPECT_EQ(contents.end, JournalEnd::kClean) << contents.describe_end();
    EXPECT_EQ(contents.last_lsn, 6U);
    testing::expect_only_truth(contents);
  }
}

TEST(JournalWriter, GoesOnWhenGivenUpSegmentsCannotBeRemoved) {
  FakeJournalFiles files;
  const auto writer = new_writer(files);
  append_inputs(*writer, 3);
  ASSERT_EQ(writer->flush(), JournalHealth::kGood);
  append_inputs(*writer, 2);
  // The write of a whole fresh segment arrives, its sync fails, and neither file can be removed.
  int syncs = 0;
  files.fault = [&](Call call, const std::string&) -> Errno {
    if (call == Call::kRemove) return EROFS;
    return call == Call::kSync && ++syncs <= 4 ? ENOSPC : 0;
  };
  EXPECT_EQ(writer->flush(), JournalHealth::kStuck);
  append_inputs(*writer, 1);
  EXPECT_EQ(writer->flush(), JournalHealth::kStuck);
  append_inputs(*writer, 1);
  EXPECT_EQ(writer->flush(), JournalHealth::kGood);
  const JournalContents contents = read(files);
  EXPECT_EQ(contents.end, JournalEnd::kClean) << contents.describe_end();
  EXPECT_EQ(contents.last_lsn, 7U);
  testing::expect_only_truth(contents);
}

TEST(JournalWriter, HoldsOnlySoMuchWhileStuck) {
  FakeJournalFiles files;
  const auto writer = new_writer(files);
  fail_calls(files, Call::kWrite, ENOSPC, 1'000'000);
  AppendRecord record = testing::input(kTerm, 1);
  record.payload.assign(limits::kJournalPayloadBytes, 'x');
  std::size_t taken = 0;
  while (true) {
    const auto appended = writer->append(record);
    if (!appended.ok()) {
      EXPECT_EQ(appended.error().code, ErrorCode::kBusy);
      break;
    }
    ASSERT_LE(++taken * record.payload.size(), limits::kJournalPendingBytes);
  }
  EXPECT_EQ(writer->last_lsn(), taken);
}

TEST(JournalWriter, FailsForGoodWhenTheStorageDoes) {
  for (const Call call : {Call::kWrite, Call::kSync, Call::kCreate}) {
    FakeJournalFiles files;
    const auto writer = new_writer(files, {.segment_records = 3});
    append_inputs(*writer, 3);
    ASSERT_EQ(writer->flush(), JournalHealth::kGood);
    fail_calls(files, call, EIO, 1'000'000);
    append_inputs(*writer, 1);
    EXPECT_EQ(writer->flush(), JournalHealth::kFailed);
    EXPECT_EQ(writer->trouble().code, ErrorCode::kInternal);
    fail_calls(files, call, EIO, 0);
    EXPECT_EQ(writer->flush(), JournalHealth::kFailed) << "what the kernel dropped cannot be trusted again";
    EXPECT_FALSE(writer->append(testing::input(kTerm, 5)).ok());
    EXPECT_EQ(writer->durable_lsn(), 3U);
    EXPECT_EQ(read(files).last_lsn, 3U);
  }
}

TEST(JournalWriter, RollsByRecordsAndBySize) {
  FakeJournalFiles by_records;
  testing::live(by_records, {.batches = 10, .per_batch = 1, .writer = {.segment_records = 4}});
  EXPECT_EQ(by_records.names().size(), 3U);  // 4 + 4 + 3 with the TERM record
  testing::expect_only_truth(read(by_records));
  FakeJournalFiles by_size;
  testing::live(by_size, {.batches = 10, .per_batch = 1, .writer = {.segment_bytes = 200}});
  EXPECT_GE(by_size.names().size(), 4U);
  testing::expect_only_truth(read(by_size));
}

TEST(JournalWriter, DeletesOnlyWhatTheSnapshotCovers) {
  FakeJournalFiles files;
  const JournalWriterOptions options{.segment_records = 4, .snapshot_every = 1'000'000, .history_bytes = 0};
  const auto writer = new_writer(files, options);
  for (int i = 0; i < 10; ++i) {
    append_inputs(*writer, 1);
    ASSERT_EQ(writer->flush(), JournalHealth::kGood);
  }
  EXPECT_EQ(files.names().size(), 3U);
  fail_calls(files, Call::kRename, EIO, 1);
  EXPECT_FALSE(writer->take_snapshot("state", {.term = kTerm}).ok());
  EXPECT_EQ(files.names().size(), 3U) << "no snapshot, nothing deleted";
  EXPECT_EQ(writer->health(), JournalHealth::kGood);
  ASSERT_TRUE(writer->take_snapshot("state", {.term = kTerm}).ok());
  EXPECT_EQ(files.names().size(), 2U) << "the snapshot and the segment behind it";
  append_inputs(*writer, 1);
  ASSERT_EQ(writer->flush(), JournalHealth::kGood);
  const JournalContents contents = read(*files.after_crash(DataLeft::kSyncedOnly, NamesLeft::kAll));
  ASSERT_TRUE(contents.snapshot.has_value());
  EXPECT_EQ(contents.snapshot->bytes, "state");
  EXPECT_EQ(contents.snapshot->lsn, 10U);
  ASSERT_EQ(contents.records.size(), 2U);
  EXPECT_EQ(contents.records[0].type, RecordType::kSnapshotTaken);
  EXPECT_EQ(contents.records[1].payload, testing::payload_of(12));
}

TEST(JournalWriter, AsksForASnapshotEverySoManyRecords) {
  FakeJournalFiles files;
  const auto writer = new_writer(files, {.snapshot_every = 5});
  append_inputs(*writer, 4);
  EXPECT_FALSE(writer->snapshot_due());
  append_inputs(*writer, 1);
  EXPECT_TRUE(writer->snapshot_due());
  ASSERT_TRUE(writer->take_snapshot("state", {.term = kTerm}).ok());
  EXPECT_FALSE(writer->snapshot_due());
  fail_calls(files, Call::kCreate, ENOSPC, 1);
  append_inputs(*writer, 5);
  EXPECT_TRUE(writer->snapshot_due());
  EXPECT_FALSE(writer->take_snapshot("state", {.term = kTerm}).ok());
  EXPECT_FALSE(writer->snapshot_due()) << "not before as many records again";
  EXPECT_EQ(writer->health(), JournalHealth::kGood);
}

}  // namespace
}  // namespace monarch
