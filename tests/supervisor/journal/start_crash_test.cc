// A loss of power at each call into the file system while a job starts and ends, and everything that may be left of the
// page cache then: what is found is a job that never began, or one that goes on, with all that it needs.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/supervisor/journal/fake_journal_files.h"
#include "tests/supervisor/journal/journal_story.h"

namespace monarch {
namespace {

using testing::DataLeft;
using testing::FakeJournalFiles;
using testing::NamesLeft;

constexpr std::size_t kBytes = 100;
constexpr DataLeft kDataLeft[] = {DataLeft::kSyncedOnly, DataLeft::kHalf, DataLeft::kAll};
constexpr NamesLeft kNamesLeft[] = {NamesLeft::kSyncedOnly, NamesLeft::kAll};

// How far a supervisor came. What it has done after each of these others have heard of.
struct Came {
  Term term;              // it has bound its ports
  bool launched = false;  // workers know its key and its ports
  bool told = false;      // viewers know the verdict
};

std::string words_of(const std::string& name) { return "all of " + name; }

bool is_whole(FakeJournalFiles& files, const std::string& name) {
  const auto bytes = files.read(name, 0, kBytes);
  return bytes.ok() && *bytes == words_of(name);
}

bool is_there(const FakeJournalFiles& files, const std::string& name) { return files.names().contains(name); }

// As `monarch run` and the supervisor do it, after any that came before.
void make_job(FakeJournalFiles& files) {
  for (const char* name : {"spec.yaml", "spec.dir"}) {
    (void)write_file_atomically(files, name, words_of(name), Durability::kLater);
  }
}

Came live(FakeJournalFiles& files) {
  Came came;
  std::vector<FileBeside> beside{{.name = "spec.yaml"}, {.name = "spec.dir"}};
  if (!is_there(files, "home")) {
    if (write_aside(files, "home", words_of("home")) != 0) return came;
    beside.push_back({.name = "home", .aside = true});
  }
  auto journal = recover_journal(files, {.wall = {}, .now = {}, .writer = {}, .beside = beside});
  if (!journal.ok()) return came;
  came.term = journal->term;
  JournalWriter& writer = *journal->writer;
  for (const char* name : {"key", "ports.json"}) {
    if (is_whole(files, name)) continue;
    if (write_file_atomically(files, name, words_of(name), Durability::kLater) != 0) return came;
  }
  beside = {{.name = "key"}, {.name = "ports.json"}};
  EXPECT_TRUE(writer.append(testing::input(came.term, writer.last_lsn() + 1)).ok());
  if (writer.flush(beside) != JournalHealth::kGood) return came;
  came.launched = std::all_of(beside.begin(), beside.end(), [](const FileBeside& file) { return file.failure == 0; });
  if (!came.launched || write_aside(files, "verdict.json", words_of("verdict.json")) != 0) return came;
  EXPECT_TRUE(writer.append({RecordType::kVerdict, came.term, {}, {}, "ended"}).ok());
  beside = {{.name = "verdict.json", .aside = true}};
  if (writer.flush(beside) != JournalHealth::kGood) return came;
  came.told = beside.front().failure == 0;
  return came;
}

bool has(const JournalContents& contents, RecordType type) {
  return std::any_of(contents.records.begin(), contents.records.end(),
                     [type](const Record& record) { return record.type == type; });
}

void expect_all_that_is_needed(FakeJournalFiles& left, const Came& came) {
  const auto contents = read_journal(left);
  ASSERT_TRUE(contents.ok());
  ASSERT_TRUE(contents->usable()) << contents->describe_end();
  ASSERT_GE(contents->last_term, came.term) << "J6: a port was bound under it";
  if (is_there(left, "home")) {
    ASSERT_TRUE(is_whole(left, "home")) << "what cannot be read keeps every supervisor away";
  }
  for (const char* name : {"spec.yaml", "spec.dir", "home"}) {
    ASSERT_TRUE(came.term == Term() || is_whole(left, name)) << name;
  }
  ASSERT_TRUE(!came.launched || has(*contents, RecordType::kInput)) << "J1";
  for (const char* name : {"key", "ports.json"}) ASSERT_TRUE(!came.launched || is_whole(left, name)) << name;
  if (is_there(left, "verdict.json")) {
    ASSERT_TRUE(is_whole(left, "verdict.json"));
    ASSERT_TRUE(has(*contents, RecordType::kVerdict));
  }
  ASSERT_TRUE(!came.told || is_there(left, "verdict.json"));
}

TEST(StartCrash, AtAnyCallLeavesAJobThatNeverBeganOrOneThatGoesOn) {
  FakeJournalFiles whole;
  make_job(whole);
  const std::size_t of_run = whole.calls();
  ASSERT_TRUE(live(whole).told);
  ASSERT_GT(whole.calls(), 25U);
  for (std::size_t call = 0; call <= whole.calls(); ++call) {
    FakeJournalFiles files;
    files.die_at(call);
    make_job(files);
    const Came came = call < of_run ? Came{} : live(files);
    for (const DataLeft data : kDataLeft) {
      for (const NamesLeft names : kNamesLeft) {
        SCOPED_TRACE(text("call ", call, " data ", static_cast<int>(data), " names ", static_cast<int>(names)));
        const auto left = files.after_crash(data, names);
        expect_all_that_is_needed(*left, came);
        if (HasFatalFailure()) return;
        if (came.term == Term()) make_job(*left);  // it never began: nothing is lost with it
        const Came next = live(*left);
        ASSERT_TRUE(next.told);
        ASSERT_GT(next.term, came.term);
        const auto later = left->after_crash(DataLeft::kSyncedOnly, NamesLeft::kSyncedOnly);
        expect_all_that_is_needed(*later, next);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(StartCrash, WaitsForTheDiskTwiceForEachOfItsThreeRounds) {
  FakeJournalFiles files;
  make_job(files);
  std::vector<testing::Call> calls;
  files.fault = [&](testing::Call call, const std::string&) {
    calls.push_back(call);
    return 0;
  };
  ASSERT_TRUE(live(files).told);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), testing::Call::kSyncDirectory), 3);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), testing::Call::kSync), 4 + 3 + 2);
}

}  // namespace
}  // namespace monarch
