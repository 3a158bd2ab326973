#include "supervisor/journal/journal_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/supervisor/journal/fake_journal_files.h"
#include "tests/supervisor/journal/journal_story.h"
#include "tests/supervisor/journal/temporary_directory.h"

namespace monarch {
namespace {

using testing::FakeJournalFiles;
using testing::TemporaryDirectory;

TEST(JournalReader, ReadsARealDirectoryWithOtherFilesInIt) {
  const TemporaryDirectory directory;
  const auto files = posix_journal_files(directory.open());
  const testing::StoryEnd end =
      testing::live(*files, {.batches = 30, .per_batch = 2, .writer = {.segment_records = 10, .snapshot_every = 20}});
  ASSERT_EQ(write_file_atomically(*files, "endpoint.json", "{}"), 0);
  const auto contents = read_journal(*files);
  ASSERT_TRUE(contents.ok());
  EXPECT_EQ(contents->end, JournalEnd::kClean) << contents->describe_end();
  EXPECT_EQ(contents->last_lsn, end.acknowledged);
  EXPECT_EQ(testing::replay(*contents), end.state);
  testing::expect_only_truth(*contents);
  const auto names = files->list();
  ASSERT_TRUE(names.ok());
  for (const std::string& name : *names) {
    struct stat status {};
    ASSERT_EQ(::stat((directory.path() + "/" + name).c_str(), &status), 0);
    if (S_ISREG(status.st_mode)) {
      EXPECT_EQ(status.st_mode & 07777U, 0600U) << name;
    }
  }
}

TEST(JournalReader, DoesNotFollowLinks) {
  const TemporaryDirectory directory;
  ASSERT_EQ(::symlink("/etc/passwd", (directory.path() + "/journal.0001").c_str()), 0);
  const auto files = posix_journal_files(directory.open());
  EXPECT_FALSE(read_journal(*files).ok());
}

TEST(JournalFollower, GivesEachRecordOnceAcrossSegmentsSnapshotsAndTornTails) {
  FakeJournalFiles files;
  auto contents = read_journal(files);
  JournalFollower follower(files, *contents);
  std::uint64_t due = 1;
  const auto look = [&](std::uint64_t until) {
    const auto news = follower.poll();
    ASSERT_TRUE(news.ok()) << news.error().message;
    EXPECT_EQ(news->missed, 0U);
    for (const Record& record : news->records) EXPECT_EQ(record.lsn, due++);
    EXPECT_EQ(due - 1, until);
  };
  for (int life = 0; life < 3; ++life) {
    auto recovered =
        recover_journal(files, {.wall = {}, .now = {}, .writer = {.segment_records = 4, .snapshot_every = 7}});
    ASSERT_TRUE(recovered.ok());
    JournalWriter& writer = *recovered->writer;
    look(writer.durable_lsn());
    for (int i = 0; i < 12; ++i) {
      ASSERT_TRUE(writer.append(testing::input(recovered->term, writer.last_lsn() + 1)).ok());
      ASSERT_EQ(writer.flush(), JournalHealth::kGood);
      if (writer.snapshot_due()) {
        ASSERT_TRUE(writer.take_snapshot("s", {.term = recovered->term}).ok());
      }
      if (i % 3 == 0) look(writer.durable_lsn());
    }
    look(writer.durable_lsn());
    look(writer.durable_lsn());
    // The supervisor dies while it writes.
    std::string& last = std::prev(std::prev(files.names().end()))->second->bytes;
    last.append("MRJ1 torn");
    look(writer.durable_lsn());
  }
}

TEST(JournalFollower, SeesARecordOnlyWhenItIsWhole) {
  FakeJournalFiles source;
  testing::live(source, {.batches = 4, .per_batch = 1, .writer = {}});
  const std::string bytes = source.bytes_of("journal.0001");
  FakeJournalFiles files;
  std::unique_ptr<JournalFile> file;
  ASSERT_EQ(files.create("journal.0001", file), 0);
  JournalFollower follower(files, *read_journal(files));
  std::uint64_t seen = 0;
  for (const char byte : bytes) {
    ASSERT_EQ(file->write({&byte, 1}), 0);
    const auto news = follower.poll();
    ASSERT_TRUE(news.ok());
    for (const Record& record : news->records) EXPECT_EQ(record.lsn, ++seen);
    EXPECT_EQ(seen, read_journal(files)->last_lsn);
  }
  EXPECT_EQ(seen, 5U);
}

TEST(JournalFollower, SaysHowManyRecordsItMissed) {
  FakeJournalFiles files;
  const JournalWriterOptions options{.segment_records = 4, .snapshot_every = 6, .history_bytes = 0};
  testing::live(files, {.batches = 1, .per_batch = 1, .writer = options});
  JournalFollower follower(files, *read_journal(files));
  testing::live(files, {.batches = 30, .per_batch = 1, .writer = options});
  const auto news = follower.poll();
  ASSERT_TRUE(news.ok());
  ASSERT_FALSE(news->records.empty());
  EXPECT_GT(news->missed, 0U);
  EXPECT_EQ(news->records.front().lsn, 2U + news->missed + 1U);
  EXPECT_EQ(news->records.back().lsn, read_journal(files)->last_lsn);
}

// A child appends and says which LSN is durable; it is killed at some point of its work.
[[noreturn]] void append_until_killed(const std::string& path, int report_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that failed leaves none behind
  const auto files = posix_journal_files(UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  auto recovered =
      recover_journal(*files, {.wall = {}, .now = {}, .writer = {.segment_records = 16, .snapshot_every = 40}});
  if (!recovered.ok()) ::_exit(1);
  JournalWriter& writer = *recovered->writer;
  std::string state = testing::replay(recovered->contents);
  while (true) {
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t lsn = writer.last_lsn() + 1;
      if (!writer.append(testing::input(recovered->term, lsn)).ok()) ::_exit(2);
      state += text(lsn, '=', testing::payload_of(lsn), '\n');
    }
    if (writer.flush() != JournalHealth::kGood) ::_exit(3);
    if (writer.snapshot_due() && !writer.take_snapshot(state, {.term = recovered->term}).ok()) ::_exit(4);
    const std::uint64_t durable = writer.durable_lsn();
    if (::write(report_fd, &durable, sizeof durable) != sizeof durable) ::_exit(5);
  }
}

TEST(JournalReader, FindsAllThatAKilledWriterAcknowledged) {
  const TemporaryDirectory directory;
  const auto files = posix_journal_files(directory.open());
  std::uint64_t previous = 0;
  for (int life = 1; life <= 8; ++life) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    if (child == 0) append_until_killed(directory.path(), ends[1]);
    ASSERT_GT(child, 0);
    ::close(ends[1]);
    std::uint64_t acknowledged = 0;
    // Read while it is being written, then kill it in the middle of its work.
    for (int batches = 0; batches < 6 * life; ++batches) {
      ASSERT_EQ(::read(ends[0], &acknowledged, sizeof acknowledged), static_cast<ssize_t>(sizeof acknowledged));
      auto live = read_journal(*files);
      // Faster than a slow reader for as long as there is room for its reports: then it waits.
      while (!live.ok() && live.error().code == ErrorCode::kBusy) live = read_journal(*files);
      ASSERT_TRUE(live.ok()) << live.error().message;
      ASSERT_TRUE(live->usable()) << live->describe_end();
      ASSERT_GE(live->last_lsn, acknowledged);
      testing::expect_only_truth(*live);
    }
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    std::uint64_t later = 0;
    while (::read(ends[0], &later, sizeof later) == static_cast<ssize_t>(sizeof later)) acknowledged = later;
    ::close(ends[0]);
    const auto contents = read_journal(*files);
    ASSERT_TRUE(contents.ok());
    ASSERT_TRUE(contents->usable()) << contents->describe_end();
    EXPECT_GE(contents->last_lsn, acknowledged);
    EXPECT_GT(contents->last_lsn, previous);
    EXPECT_EQ(contents->last_term, Term(static_cast<std::uint64_t>(life)));
    testing::expect_only_truth(*contents);
    previous = contents->last_lsn;
  }
}

}  // namespace
}  // namespace monarch
