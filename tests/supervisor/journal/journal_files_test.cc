// Files that are written as a whole: what of them a loss of power leaves.

#include "supervisor/journal/journal_files.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "tests/supervisor/journal/fake_journal_files.h"

namespace monarch {
namespace {

using testing::Call;
using testing::DataLeft;
using testing::FakeJournalFiles;
using testing::NamesLeft;

constexpr std::size_t kBytes = 100;

std::string left_of(const FakeJournalFiles& files, DataLeft data, NamesLeft names) {
  const auto after = files.after_crash(data, names);
  auto bytes = after->read("verdict.json", 0, kBytes);
  return bytes.ok() ? *bytes : "none";
}

TEST(WriteFileAtomically, LeavesAllOfItAfterALossOfPower) {
  FakeJournalFiles files;
  ASSERT_EQ(write_file_atomically(files, "verdict.json", "{}"), 0);
  EXPECT_EQ(left_of(files, DataLeft::kSyncedOnly, NamesLeft::kSyncedOnly), "{}");
}

TEST(WriteFileAtomically, WaitsForNoDiskWhereDurabilityComesLater) {
  FakeJournalFiles files;
  files.fault = [](Call call, const std::string&) {
    return call == Call::kSync || call == Call::kSyncDirectory ? EIO : 0;
  };
  ASSERT_EQ(write_file_atomically(files, "verdict.json", "{}", Durability::kLater), 0);
  EXPECT_EQ(*files.read("verdict.json", 0, kBytes), "{}");
  EXPECT_EQ(left_of(files, DataLeft::kSyncedOnly, NamesLeft::kSyncedOnly), "none");
}

TEST(WriteFileAtomically, LeavesTheOldFileWhereTheNewOneFails) {
  for (const Call failing : {Call::kCreate, Call::kWrite, Call::kSync, Call::kRename}) {
    FakeJournalFiles files;
    ASSERT_EQ(write_file_atomically(files, "verdict.json", "old"), 0);
    files.fault = [failing](Call call, const std::string&) { return call == failing ? ENOSPC : 0; };
    EXPECT_EQ(write_file_atomically(files, "verdict.json", "new"), ENOSPC);
    EXPECT_EQ(left_of(files, DataLeft::kSyncedOnly, NamesLeft::kAll), "old");
    EXPECT_EQ(files.names().size(), 1U);
  }
}

}  // namespace
}  // namespace monarch
