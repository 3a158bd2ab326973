// The journal on a real file system of 1 MiB that fills up, empties, and becomes read-only. Needs root, to mount one in
// a mount namespace of its own; without it the program exits 77 and says so.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>

#include "supervisor/journal/journal_thread.h"
#include "supervisor/journal/state_dir.h"
#include "tests/supervisor/journal/journal_story.h"

namespace monarch {
namespace {

constexpr char kMountPoint[] = "/mnt";

class FullDiskTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::mount("tmpfs", kMountPoint, "tmpfs", 0, "size=1m,mode=700"), 0); }
  void TearDown() override {
    files_.reset();
    EXPECT_EQ(::umount2(kMountPoint, MNT_DETACH), 0);
  }

  void open() {
    files_ = open_files();
    auto recovered = recover_journal(*files_, {});
    ASSERT_TRUE(recovered.ok()) << recovered.error().message;
    writer_ = std::move(recovered->writer);
    term_ = recovered->term;
  }
  static std::unique_ptr<JournalFiles> open_files() {
    return posix_journal_files(UniqueFd(::open(kMountPoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  }
  // All the space that is left.
  static void fill() {
    const UniqueFd fd(::open("/mnt/filler", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    const std::string block(4096, 'x');
    while (::write(fd.get(), block.data(), block.size()) > 0) {
    }
    ASSERT_EQ(errno, ENOSPC);
  }
  static void empty() { ASSERT_EQ(::unlink("/mnt/filler"), 0); }
  JournalHealth append_and_flush(int count) {
    for (int i = 0; i < count; ++i) {
      EXPECT_TRUE(writer_->append(testing::input(term_, writer_->last_lsn() + 1)).ok());
    }
    return writer_->flush();
  }

  std::unique_ptr<JournalFiles> files_;
  std::unique_ptr<JournalWriter> writer_;
  Term term_;
};

TEST_F(FullDiskTest, TheWriterIsStuckUntilThereIsSpaceAndLosesNothing) {
  open();
  ASSERT_EQ(append_and_flush(20), JournalHealth::kGood);
  fill();
  JournalHealth health = JournalHealth::kGood;
  // The last page of the segment may still have room.
  while (health == JournalHealth::kGood) health = append_and_flush(20);
  ASSERT_EQ(health, JournalHealth::kStuck);
  EXPECT_EQ(writer_->trouble().code, ErrorCode::kBusy);
  const std::uint64_t durable = writer_->durable_lsn();
  EXPECT_EQ(append_and_flush(20), JournalHealth::kStuck);
  const auto meanwhile = read_journal(*files_);
  ASSERT_TRUE(meanwhile.ok());
  ASSERT_TRUE(meanwhile->usable()) << meanwhile->describe_end();
  EXPECT_GE(meanwhile->last_lsn, durable);
  testing::expect_only_truth(*meanwhile);
  empty();
  EXPECT_EQ(writer_->flush(), JournalHealth::kGood);
  EXPECT_EQ(writer_->durable_lsn(), writer_->last_lsn());
  const auto contents = read_journal(*files_);
  ASSERT_TRUE(contents.ok());
  EXPECT_EQ(contents->end, JournalEnd::kClean) << contents->describe_end();
  EXPECT_EQ(contents->last_lsn, writer_->last_lsn());
  testing::expect_only_truth(*contents);
}

TEST_F(FullDiskTest, ASnapshotThatDoesNotFitCostsNothing) {
  open();
  ASSERT_EQ(append_and_flush(5), JournalHealth::kGood);
  EXPECT_FALSE(writer_->take_snapshot(std::string(2U << 20U, 's'), {.term = term_}).ok());
  EXPECT_EQ(append_and_flush(5), JournalHealth::kGood);
  const auto contents = read_journal(*files_);
  ASSERT_TRUE(contents.ok());
  EXPECT_EQ(contents->end, JournalEnd::kClean) << contents->describe_end();
  EXPECT_FALSE(contents->snapshot.has_value());
  const auto names = files_->list();
  ASSERT_TRUE(names.ok());
  for (const std::string& name : *names) EXPECT_NE(name, kSnapshotTemporaryName);
}

TEST_F(FullDiskTest, AReadOnlyRemountIsStuckToo) {
  // A file that is open for writing forbids the remount: the writer begins a new segment with each batch.
  files_ = open_files();
  auto recovered = recover_journal(*files_, {});
  ASSERT_TRUE(recovered.ok());
  term_ = recovered->term;
  recovered->writer.reset();
  const auto contents = read_journal(*files_);
  auto writer = JournalWriter::create(*files_, *contents);
  ASSERT_TRUE(writer.ok());
  writer_ = std::move(*writer);
  ASSERT_EQ(::mount("tmpfs", kMountPoint, "tmpfs", MS_REMOUNT | MS_RDONLY, "size=1m,mode=700"), 0) << strerror(errno);
  EXPECT_EQ(append_and_flush(1), JournalHealth::kStuck);
  const auto refused = StateDir::open_for_writing(kMountPoint);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find(kMountPoint), std::string::npos);
  ASSERT_EQ(::mount("tmpfs", kMountPoint, "tmpfs", MS_REMOUNT, "size=1m,mode=700"), 0);
  EXPECT_EQ(writer_->flush(), JournalHealth::kGood);
}

TEST_F(FullDiskTest, ATooSmallPlaceForStateIsSaidAtOnce) {
  const auto refused = StateDir::open_for_writing(kMountPoint);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kBusy);
  EXPECT_NE(refused.error().message.find("no space for a job in /mnt/jobs"), std::string::npos)
      << refused.error().message;
}

TEST_F(FullDiskTest, TheThreadNoticesARemovedDirectory) {
  ASSERT_EQ(::mkdir("/mnt/job", 0700), 0);
  auto files = posix_journal_files(UniqueFd(::open("/mnt/job", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  auto recovered = recover_journal(*files, {});
  ASSERT_TRUE(recovered.ok());
  auto reports = Inbox<JournalReport>::create(100);
  ASSERT_TRUE(reports.ok());
  const auto thread = JournalThread::start({.files = std::move(files),
                                            .writer = std::move(recovered->writer),
                                            .reports = reports->get(),
                                            .look_every = Duration::milliseconds(10)});
  ASSERT_TRUE(thread.ok());
  ASSERT_EQ(::unlink("/mnt/job/journal.0001"), 0);
  ASSERT_EQ(::rmdir("/mnt/job"), 0);
  pollfd ready{(*reports)->descriptor(), POLLIN, 0};
  ASSERT_EQ(::poll(&ready, 1, 10'000), 1);
  const auto all = (*reports)->take_all();
  ASSERT_EQ(all.size(), 1U);
  ASSERT_NE(std::get_if<JournalFailed>(&all.front()), nullptr);
}

}  // namespace
}  // namespace monarch

int main(int argc, char** argv) {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", "/mnt", "tmpfs", 0, "size=4k") != 0) {
    std::fprintf(stderr, "skipped: mounting a file system of 1 MiB in a private mount namespace: %s\n",
                 std::strerror(errno));
    return 77;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
