// What is made durable together: in which order, and what becomes of one that fails.

#include "supervisor/journal/sync_round.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "tests/supervisor/journal/fake_journal_files.h"
#include "tests/supervisor/journal/journal_story.h"

namespace monarch {
namespace {

using testing::Call;
using testing::FakeJournalFiles;
using Stage = FileBeside::Stage;

struct SyncRoundTest : ::testing::Test {
  SyncRoundTest() {
    writer = JournalWriter::create(files, JournalContents{}).value();
    EXPECT_TRUE(writer->append(testing::input(Term(1), 1)).ok());
    EXPECT_EQ(write_file_atomically(files, "key", "k", Durability::kLater), 0);
    EXPECT_EQ(write_aside(files, "verdict.json", "{}"), 0);
    beside = {{.name = "key"}, {.name = "verdict.json", .aside = true}};
  }
  // Everything that fails once does so at its first call.
  void fail_once(Call failing, const std::string& name, Errno failure) {
    files.fault = [=, failed = false](Call call, const std::string& what) mutable -> Errno {
      if (failed || call != failing || what.find(name) == std::string::npos) return 0;
      failed = true;
      return failure;
    };
  }
  std::string left(const std::string& name) {
    const auto after = files.after_crash(testing::DataLeft::kSyncedOnly, testing::NamesLeft::kSyncedOnly);
    auto bytes = after->read(name, 0, 100);
    return bytes.ok() ? *bytes : "none";
  }

  FakeJournalFiles files;
  std::unique_ptr<JournalWriter> writer;
  std::vector<FileBeside> beside;
};

TEST_F(SyncRoundTest, MakesRecordsFilesAndNamesDurableInTwoWaits) {
  ASSERT_EQ(writer->flush(beside), JournalHealth::kGood);
  EXPECT_EQ(writer->waits(), 2U);
  EXPECT_EQ(left("key"), "k");
  EXPECT_EQ(left("verdict.json"), "{}");
  EXPECT_EQ(left("journal.0001").size(), files.bytes_of("journal.0001").size());
  for (const FileBeside& file : beside) EXPECT_EQ(file.stage, Stage::kDurable);
  ASSERT_TRUE(writer->append(testing::input(Term(1), 2)).ok());
  ASSERT_EQ(writer->flush(), JournalHealth::kGood);
  EXPECT_EQ(writer->waits(), 3U) << "without new names the bytes are all";
}

TEST_F(SyncRoundTest, GivesNoNameBeforeTheRecordsAreDurable) {
  files.fault = [](Call call, const std::string& name) {
    return call == Call::kSync && name.starts_with("journal") ? ENOSPC : 0;
  };
  ASSERT_EQ(writer->flush(beside), JournalHealth::kStuck);
  EXPECT_FALSE(files.names().contains("verdict.json"));
  files.fault = [](Call, const std::string&) { return 0; };
  ASSERT_EQ(writer->flush(beside), JournalHealth::kGood);
  EXPECT_EQ(left("verdict.json"), "{}");
}

TEST_F(SyncRoundTest, NeverAsksAgainForAFileWhoseSyncFailed) {  // J4
  fail_once(Call::kSync, "key", EIO);
  ASSERT_EQ(writer->flush(beside), JournalHealth::kGood) << "the records are durable";
  EXPECT_EQ(beside[0].stage, Stage::kFailed);
  EXPECT_EQ(beside[0].failure, EIO);
  EXPECT_EQ(beside[1].stage, Stage::kDurable);
  ASSERT_EQ(writer->flush(beside), JournalHealth::kGood);
  EXPECT_EQ(beside[0].failure, EIO);
}

TEST_F(SyncRoundTest, WritesRecordsAnewWhereTheirSyncFailedAndFilesOnce) {
  fail_once(Call::kSync, "journal", EIO);
  ASSERT_EQ(writer->flush(beside), JournalHealth::kGood);
  EXPECT_EQ(left("verdict.json"), "{}");
  EXPECT_EQ(left("journal.0001"), "none");
  EXPECT_EQ(left("journal.0002").size(), files.bytes_of("journal.0002").size());
}

TEST_F(SyncRoundTest, SaysWhichFileIsNotThereAndWhichGotNoName) {
  beside.push_back({.name = "nothing"});
  fail_once(Call::kRename, "verdict.json", EACCES);
  ASSERT_EQ(writer->flush(beside), JournalHealth::kGood);
  EXPECT_EQ(beside[0].failure, 0);
  EXPECT_EQ(beside[1].failure, EACCES);
  EXPECT_EQ(beside[2].failure, ENOENT);
}

}  // namespace
}  // namespace monarch
