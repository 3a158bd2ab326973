// What a crash leaves, for a crash at every call into the file system, and for everything that the page cache may have
// kept or lost: nothing acknowledged is gone, nothing is there that was not written, and a supervisor can go on.

#include <gtest/gtest.h>

#include "tests/supervisor/journal/fake_journal_files.h"
#include "tests/supervisor/journal/journal_story.h"

namespace monarch {
namespace {

using testing::DataLeft;
using testing::FakeJournalFiles;
using testing::NamesLeft;

constexpr testing::StoryOptions kStory{
    .batches = 14, .per_batch = 2, .writer = {.segment_records = 5, .snapshot_every = 8, .history_bytes = 0}};

struct Left {
  DataLeft data;
  NamesLeft names;
};
constexpr Left kAllLeft[] = {
    {DataLeft::kSyncedOnly, NamesLeft::kSyncedOnly},
    {DataLeft::kHalf, NamesLeft::kSyncedOnly},
    {DataLeft::kAll, NamesLeft::kSyncedOnly},
    {DataLeft::kSyncedOnly, NamesLeft::kAll},
    {DataLeft::kHalf, NamesLeft::kAll},
    {DataLeft::kAll, NamesLeft::kAll},
};

// The state that the inputs up to `lsn` make, as far as `contents` says which LSNs are inputs.
void expect_sound(const JournalContents& contents, std::uint64_t acknowledged) {
  ASSERT_TRUE(contents.usable()) << contents.describe_end();
  ASSERT_GE(contents.last_lsn, acknowledged);
  testing::expect_only_truth(contents);
  // Snapshot and records say for every line what belongs there, and no LSN twice.
  std::uint64_t before = 0;
  std::string_view rest;
  const std::string state = testing::replay(contents);
  for (rest = state; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    const std::uint64_t lsn = std::stoull(std::string(line));
    ASSERT_GT(lsn, before);
    before = lsn;
    ASSERT_EQ(line, text(lsn, '=', testing::payload_of(lsn)));
  }
}

std::size_t calls_of_a_story(const testing::StoryOptions& story) {
  FakeJournalFiles files;
  testing::live(files, story);
  return files.calls();
}

TEST(Crash, AtAnyCallLosesNothingAcknowledgedAndInventsNothing) {
  const std::size_t calls = calls_of_a_story(kStory);
  ASSERT_GT(calls, 70U);
  for (std::size_t call = 0; call < calls; ++call) {
    FakeJournalFiles files;
    files.die_at(call);
    const testing::StoryEnd end = testing::live(files, kStory);
    for (const Left left : kAllLeft) {
      SCOPED_TRACE(text("call ", call, " data ", static_cast<int>(left.data), " names ", static_cast<int>(left.names)));
      const auto after = files.after_crash(left.data, left.names);
      auto contents = read_journal(*after);
      ASSERT_TRUE(contents.ok());
      expect_sound(*contents, end.acknowledged);
      const testing::StoryEnd next = testing::live(*after, kStory);
      ASSERT_GT(next.term, end.acknowledged > 0 ? end.term : Term(0));
      contents = read_journal(*after);
      ASSERT_TRUE(contents.ok());
      ASSERT_EQ(contents->end, JournalEnd::kClean) << contents->describe_end();
      expect_sound(*contents, next.acknowledged);
      ASSERT_EQ(testing::replay(*contents), next.state);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Crash, InRecoveryAfterACrashIsNoWorse) {
  const testing::StoryOptions story{
      .batches = 5, .per_batch = 2, .writer = {.segment_records = 4, .snapshot_every = 6, .history_bytes = 0}};
  const std::size_t calls = calls_of_a_story(story);
  for (std::size_t call = 0; call < calls; ++call) {
    FakeJournalFiles first;
    first.die_at(call);
    const testing::StoryEnd end = testing::live(first, story);
    for (const Left left : kAllLeft) {
      for (std::size_t second_call = 0; second_call < 12; ++second_call) {
        const auto second = first.after_crash(left.data, left.names);
        second->die_at(second_call);
        const testing::StoryEnd second_end = testing::live(*second, story);
        for (const Left second_left : kAllLeft) {
          const auto third = second->after_crash(second_left.data, second_left.names);
          const auto contents = read_journal(*third);
          ASSERT_TRUE(contents.ok());
          expect_sound(*contents, std::max(end.acknowledged, second_end.acknowledged));
          if (HasFatalFailure()) FAIL() << "calls " << call << " and " << second_call;
        }
      }
    }
  }
}

TEST(Crash, TermsAreNeverUsedTwice) {
  FakeJournalFiles files;
  std::uint64_t before = 0;
  for (int life = 0; life < 20; ++life) {
    const testing::StoryEnd end =
        testing::live(files, {.batches = life % 3, .per_batch = 1, .writer = {.snapshot_every = 3}});
    EXPECT_EQ(end.term.value(), before + 1);
    before = end.term.value();
  }
}

// Two copies of one journal: the one that was left behind counts on from where it was.
TEST(Recover, ByForceTakesATermThatTheOneBeforeDoesNotReach) {
  FakeJournalFiles files;
  testing::live(files, {.batches = 1, .per_batch = 1, .writer = {}});
  const auto left = files.after_crash(testing::DataLeft::kSyncedOnly, testing::NamesLeft::kAll);
  const auto forced = recover_journal(files, {.wall = {}, .now = {}, .writer = {}, .forced = true});
  ASSERT_TRUE(forced.ok());
  EXPECT_EQ(forced->term, Term(1 + kForcedTermStep));
  const auto next = recover_journal(*left, {});
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(next->term, Term(2));
}

TEST(Recover, RefusesADamagedJournalNamingThePlace) {
  FakeJournalFiles files;
  testing::live(files, {.batches = 5, .per_batch = 1, .writer = {}});
  files.bytes_of("journal.0001")[100] ^= 1;
  const auto recovered = recover_journal(files, {});
  ASSERT_FALSE(recovered.ok());
  EXPECT_EQ(recovered.error().code, ErrorCode::kInvalid);
  EXPECT_NE(recovered.error().message.find("journal.0001 at byte 92"), std::string::npos) << recovered.error().message;
}

TEST(Recover, DoesNotBeginATermThatItCannotSync) {
  FakeJournalFiles files;
  files.fault = [](testing::Call call, const std::string&) { return call == testing::Call::kSync ? ENOSPC : 0; };
  const auto full = recover_journal(files, {});
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::kBusy);
  files.fault = [](testing::Call call, const std::string&) { return call == testing::Call::kSyncDirectory ? EIO : 0; };
  const auto broken = recover_journal(files, {});
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code, ErrorCode::kInternal);
}

}  // namespace
}  // namespace monarch
