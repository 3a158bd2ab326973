#include "transport/output/log_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/transport/base/lower_limit.h"

namespace monarch {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class LogFileTest : public testing::Test {
 protected:
  LogFileTest() {
    std::string path = (fs::temp_directory_path() / "monarch-log-XXXXXX").string();
    directory_ = ::mkdtemp(path.data());
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    out_ = UniqueFd(ends[0]);
    in_ = UniqueFd(ends[1]);
  }
  ~LogFileTest() override { fs::remove_all(directory_); }

  LogFile::Options options(std::uint64_t max_bytes = 0) {
    return {(directory_ / "logs" / "trainer").string(), "3.1.out", max_bytes};
  }
  fs::path path(const char* suffix = "") const {
    return directory_ / "logs" / "trainer" / (std::string("3.1.out") + suffix);
  }
  void write(std::string_view bytes) {
    ASSERT_EQ(::write(in_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  // Everything that waits in the pipe.
  void take_all(LogFile& file) {
    for (;;) {
      const LogFile::Taken taken = file.take(out_.get(), 1U << 20U);
      if (taken.outcome == LogFile::Outcome::kEmpty || taken.outcome == LogFile::Outcome::kEnded) return;
    }
  }
  // The file as a reader maps it: offset of its first byte, by NAME.start.
  std::uint64_t start_offset() const {
    if (!fs::exists(path(".start"))) return 0;
    std::ifstream in(path(".start"));
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    in >> first;
    if (!(in >> second)) return first;
    return fs::exists(path()) && fs::file_size(path()) > 0 ? first : second;
  }

  fs::path directory_;
  UniqueFd out_;
  UniqueFd in_;
};

using File = LogFileTest;

TEST_F(File, WritesWhatComesAndTellsWhere) {
  LogFile file(options());
  ASSERT_TRUE(file.open().ok());
  EXPECT_EQ(file.take(out_.get(), 100).outcome, LogFile::Outcome::kEmpty);
  write("hello\n");
  const LogFile::Taken first = file.take(out_.get(), 100);
  EXPECT_EQ(first.outcome, LogFile::Outcome::kWritten);
  EXPECT_EQ(first.offset, 0U);
  EXPECT_EQ(first.bytes, 6U);
  write("world\n");
  EXPECT_EQ(file.take(out_.get(), 100).offset, 6U);
  EXPECT_EQ(read_file(path()), "hello\nworld\n");
  char back[5];
  EXPECT_EQ(file.read_back(6, back, sizeof back), 5U);
  EXPECT_EQ(std::string(back, 5), "world");
  in_.reset();
  EXPECT_EQ(file.take(out_.get(), 100).outcome, LogFile::Outcome::kEnded);
  file.close();
  EXPECT_EQ(file.read_back(1, back, sizeof back), 5U) << "its descriptors are given back";
  EXPECT_EQ(std::string(back, 5), "ello\n");
}

TEST_F(File, KeepsOthersOut) {
  LogFile file(options());
  ASSERT_TRUE(file.open().ok());
  struct stat status {};
  ASSERT_EQ(::stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  ASSERT_EQ(::stat(path().parent_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0700U);
}

TEST_F(File, FollowsNoLinkThatSomebodyPutInItsPlace) {
  const fs::path victim = directory_ / "victim";
  std::ofstream(victim) << "precious";
  fs::create_directories(path().parent_path());
  fs::create_symlink(victim, path());
  LogFile file(options());
  EXPECT_FALSE(file.open().ok());
  write("overwritten");
  EXPECT_EQ(file.take(out_.get(), 100).outcome, LogFile::Outcome::kLost);
  EXPECT_EQ(read_file(victim), "precious");
}

TEST_F(File, GoesOnAtItsEndAfterARestart) {
  {
    LogFile file(options());
    write("before ");
    take_all(file);
    write("between ");
  }
  LogFile file(options());
  ASSERT_TRUE(file.open().ok());
  EXPECT_EQ(file.end_offset(), 7U);
  write("after");
  EXPECT_EQ(file.take(out_.get(), 100).offset, 7U);
  EXPECT_EQ(read_file(path()), "before between after");
}

TEST_F(File, RotatesAtItsLimitAndGoesOnCounting) {
  LogFile file(options(10));
  write("0123456789abcdefghijKLM");
  take_all(file);
  EXPECT_EQ(file.end_offset(), 23U);
  EXPECT_EQ(read_file(path(".1")), "abcdefghij");
  EXPECT_EQ(read_file(path()), "KLM");
  EXPECT_EQ(read_file(path(".start")), "20\n");
  EXPECT_EQ(start_offset(), 20U);
  char back[3];
  EXPECT_EQ(file.read_back(20, back, 3), 3U);
  EXPECT_EQ(std::string(back, 3), "KLM");
  EXPECT_EQ(file.read_back(0, back, 3), 0U);  // lost by rotation
}

TEST_F(File, WaitsForADescriptorToRotate) {
  if (!kWorksWithoutDescriptors) GTEST_SKIP() << kWantsDescriptors;
  LogFile file(options(8));
  write("12345678more");
  ASSERT_EQ(file.take_or_wait(out_.get(), 100).bytes, 8U);
  {
    const UniqueFd next(::fcntl(out_.get(), F_DUPFD_CLOEXEC, 3));
    const LowerLimit none(RLIMIT_NOFILE, static_cast<rlim_t>(next.get()));
    EXPECT_EQ(file.take_or_wait(out_.get(), 100).outcome, LogFile::Outcome::kWaits);
  }
  EXPECT_EQ(file.take_or_wait(out_.get(), 100).bytes, 4U);
  EXPECT_EQ(file.lost_bytes(), 0U);
  EXPECT_EQ(read_file(path(".1")), "12345678");
  EXPECT_EQ(read_file(path()), "more");
}

TEST_F(File, FindsItsPlaceAgainAfterARotation) {
  {
    LogFile file(options(10));
    write("0123456789abc");
    take_all(file);
  }
  LogFile file(options(10));
  ASSERT_TRUE(file.open().ok());
  EXPECT_EQ(file.end_offset(), 13U);
}

// A daemon may be killed between any two steps of a rotation of "0123456789" at offset 0.
struct Crash {
  const char* name;
  bool renamed;
  bool made;
};
class LogFileCrash : public LogFileTest, public testing::WithParamInterface<Crash> {};

TEST_P(LogFileCrash, LosesAndRepeatsNothing) {
  fs::create_directories(path().parent_path());
  std::ofstream(path()) << "0123456789";
  std::ofstream(path(".start")) << "0 10\n";
  if (GetParam().renamed) fs::rename(path(), path(".1"));
  if (GetParam().made) std::ofstream{path()};
  EXPECT_EQ(start_offset(), GetParam().renamed ? 10U : 0U);
  LogFile file(options(10));
  write("abc");
  take_all(file);
  EXPECT_EQ(file.end_offset(), 13U);
  EXPECT_EQ(read_file(path(".1")), "0123456789");
  EXPECT_EQ(read_file(path()), "abc");
  EXPECT_EQ(start_offset(), 10U);
}

INSTANTIATE_TEST_SUITE_P(Rotation, LogFileCrash,
                         testing::Values(Crash{"Announced", false, false}, Crash{"Renamed", true, false},
                                         Crash{"Made", true, true}),
                         [](const auto& crash) { return std::string(crash.param.name); });

// A file system of 64 KiB of its own.
class FullDisk : public LogFileTest {
 protected:
  void SetUp() override {
    fs::create_directories(directory_ / "logs");
    if (::mount("none", (directory_ / "logs").c_str(), "tmpfs", 0, "size=64k,mode=0700") != 0) {
      GTEST_SKIP() << "needs root to mount a small tmpfs: " << std::strerror(errno);
    }
    mounted_ = true;
  }
  ~FullDisk() override {
    if (mounted_) ::umount2((directory_ / "logs").c_str(), MNT_DETACH);
  }
  bool mounted_ = false;
};

TEST_F(FullDisk, LosesAndCountsAndNamesButNeverStops) {
  LogFile file(options());
  const std::string piece(32U << 10U, 'x');
  std::uint64_t written = 0;
  std::uint64_t lost = 0;
  for (int i = 0; i < 10; ++i) {
    write(piece);
    for (;;) {
      const LogFile::Taken taken = file.take(out_.get(), 256U << 10U);
      if (taken.outcome == LogFile::Outcome::kWritten) written += taken.bytes;
      lost += taken.lost.size();
      if (taken.outcome == LogFile::Outcome::kEmpty) break;
    }
  }
  EXPECT_EQ(written + lost, 10 * piece.size());
  EXPECT_GT(lost, 0U);
  EXPECT_EQ(file.lost_bytes(), lost);
  EXPECT_TRUE(file.failing());
  EXPECT_EQ(file.end_offset(), written);

  // Room again: what comes next is written, behind a line that names the loss.
  fs::resize_file(path(), 0);
  LogFile again(options());
  ASSERT_TRUE(again.open().ok());
  std::ofstream filler(directory_ / "logs" / "filler");
  filler << std::string(64U << 10U, 'f');
  filler.close();
  write("lost");
  const LogFile::Taken lost_again = again.take(out_.get(), 100);
  EXPECT_EQ(lost_again.outcome, LogFile::Outcome::kLost);
  EXPECT_EQ(lost_again.lost, "lost") << "it is the caller's";
  fs::remove(directory_ / "logs" / "filler");
  write("kept\n");
  take_all(again);
  EXPECT_FALSE(again.failing());
  EXPECT_THAT(read_file(path()), testing::EndsWith("kept\n"));
  EXPECT_NE(read_file(path()).find("4 bytes of output were lost here"), std::string::npos);
  EXPECT_EQ(again.end_offset(), read_file(path()).size());
}

}  // namespace
}  // namespace monarch
