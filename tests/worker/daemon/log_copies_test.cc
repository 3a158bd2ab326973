// LogWriter where the supervisor keeps a copy: what is said is whole, or it is said what is not.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transport/base/clock.h"
#include "worker/daemon/log_writer.h"

namespace monarch::daemon {
namespace {

namespace fs = std::filesystem;

constexpr Duration kDeadline = Duration::seconds(60);
const Incarnation kRank{RankId{MeshId(0), Rank(3)}, Generation{Term(1), 2}};
const Incarnation kStandby{RankId{MeshId(2), Rank(0)}, Generation{Term(1), 1}};

// Keeps what it is told like a copy: only what follows on what it has.
class CopySink final : public OutputSink {
 public:
  bool wanted() const override { return there; }
  bool offer(const Incarnation& incarnation, Output&& output) override {
    if (incarnation == kStandby) {
      EXPECT_EQ(output.offset, of_standby.size());
      of_standby += output.bytes;
      return true;
    }
    EXPECT_EQ(incarnation, kRank);
    std::string& copy = copies[output.stream];
    offsets.push_back(output.offset);
    if (output.offset == copy.size() + missing[output.stream]) copy += output.bytes;
    return true;
  }
  bool offer_unkept(const Incarnation& /*incarnation*/, Output&& /*output*/) override { return true; }
  bool gone(const Incarnation& incarnation, const OutputGone& gone) override {
    EXPECT_EQ(incarnation, kRank);
    missing[gone.stream] = gone.oldest - copies[gone.stream].size();
    return true;
  }
  bool there = true;
  std::map<OutputStream, std::string> copies;
  std::map<OutputStream, std::uint64_t> missing;
  std::vector<std::uint64_t> offsets;
  std::string of_standby;
};

class LogCopies : public testing::Test {
 protected:
  LogCopies() {
    std::string path = (fs::temp_directory_path() / "monarch-copies-XXXXXX").string();
    directory_ = ::mkdtemp(path.data());
    loop_ = *EventLoop::create();
    for (std::array<UniqueFd, 2>* pipe : {&out_, &err_}) {
      std::array<int, 2> ends{};
      EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
      *pipe = {UniqueFd(ends[0]), UniqueFd(ends[1])};
    }
    writer_ = std::make_unique<LogWriter>(*loop_, LogWriter::Options{directory_.string(), true}, sink_,
                                          LogWriter::Handlers{[this](const OutputTold& told, const OutputTotals&) {
                                            told_ = told;
                                            return true;
                                          }});
  }
  ~LogCopies() override {
    writer_.reset();
    fs::remove_all(directory_);
  }

  void add(std::uint64_t max_bytes = 0) {
    ASSERT_TRUE(writer_->add({kRank, "trainer", max_bytes, std::move(out_[0]), std::move(err_[0])}).ok());
  }
  // Writes and lets the writer take it, a pipe's worth at a time.
  void print(const std::string& bytes) {
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t n = ::write(out_[1].get(), bytes.data() + done, std::min<std::size_t>(bytes.size() - done, 4'096));
      ASSERT_GT(n, 0);
      done += static_cast<std::size_t>(n);
      printed_ += static_cast<std::uint64_t>(n);
      ASSERT_TRUE(turn_until([&] { return written() == printed_; }));
    }
  }
  std::uint64_t written() const {
    std::uint64_t bytes = 0;
    for (const char* name : {"3.2.out", "3.2.out.1"}) {
      std::error_code missing;
      const auto size = fs::file_size(directory_ / "trainer" / name, missing);
      if (!missing) bytes += size;
    }
    return bytes + rotated_away_;
  }
  void end() {
    out_[1].reset();
    err_[1].reset();
    writer_->rank_ended(kRank);
  }
  bool turn_until(const std::function<bool()>& condition) {
    const Instant deadline = boot_now() + kDeadline;
    const TimerId timer = loop_->at(deadline, [] {});
    while (!condition() && boot_now() < deadline) loop_->run_once();
    loop_->cancel(timer);
    return condition();
  }

  fs::path directory_;
  std::unique_ptr<EventLoop> loop_;
  CopySink sink_;
  OutputTold told_;
  std::array<UniqueFd, 2> out_;
  std::array<UniqueFd, 2> err_;
  std::unique_ptr<LogWriter> writer_;
  std::uint64_t printed_ = 0;
  std::uint64_t rotated_away_ = 0;
};

TEST_F(LogCopies, SkipNothingWhileNobodyListens) {
  add();
  sink_.there = false;
  std::string flood(LogWriter::kBacklogBytes + (1U << 20U), 'x');
  print(flood);
  sink_.there = true;
  writer_->sink_ready();
  EXPECT_TRUE(turn_until([&] { return sink_.copies[OutputStream::kStdout].size() == flood.size(); }));
  EXPECT_EQ(sink_.offsets.front(), 0U);
}

TEST_F(LogCopies, AreSaidAgainFromWhereTheyAreAskedFor) {
  add();
  print("0123456789");
  ASSERT_TRUE(turn_until([&] { return sink_.copies[OutputStream::kStdout].size() == 10; }));
  sink_.copies[OutputStream::kStdout].resize(4);  // the link broke, and these were on their way
  print("abc");
  ASSERT_TRUE(turn_until([&] { return sink_.offsets.back() == 10; }));
  EXPECT_EQ(sink_.copies[OutputStream::kStdout], "0123");
  writer_->say_again(kRank, {.stream = OutputStream::kStdout, .offset = 4});
  EXPECT_TRUE(turn_until([&] { return sink_.copies[OutputStream::kStdout] == "0123456789abc"; }));
}

// Nobody took it before its pipes became those of a rank.
TEST_F(LogCopies, HaveAllThatAStandbyWroteBeforeItBecameARank) {
  const auto copy_of = [](const UniqueFd& pipe) { return UniqueFd(::fcntl(pipe.get(), F_DUPFD_CLOEXEC, 0)); };
  ASSERT_TRUE(writer_->add({kStandby, "standby-trainer", 0, copy_of(out_[0]), copy_of(err_[0])}).ok());
  sink_.there = false;
  ASSERT_EQ(::write(out_[1].get(), "loading\n", 8), 8);
  LogSource rank{kRank, "trainer", 0, std::move(out_[0]), std::move(err_[0])};
  rank.standby = kStandby;
  ASSERT_TRUE(writer_->add(std::move(rank)).ok());
  ASSERT_EQ(::write(out_[1].get(), "working\n", 8), 8);
  sink_.there = true;
  writer_->sink_ready();
  EXPECT_TRUE(turn_until([&] { return sink_.copies[OutputStream::kStdout] == "working\n"; }));
  EXPECT_TRUE(turn_until([&] { return sink_.of_standby == "loading\n"; }));
  writer_->forget(kStandby);
}

TEST_F(LogCopies, SayWhatWasRotatedAway) {
  add(10);
  sink_.there = false;
  print("0123456789");
  print("abcdefghij");
  rotated_away_ = 10;
  print("ABC");
  sink_.there = true;
  writer_->say_again(kRank, {.stream = OutputStream::kStdout, .offset = 0});
  EXPECT_TRUE(turn_until([&] { return sink_.copies[OutputStream::kStdout] == "ABC"; }));
  EXPECT_EQ(sink_.missing[OutputStream::kStdout], 20U);
}

TEST_F(LogCopies, HaveTheErrorFileThatARankLeft) {
  add();
  print("x");
  std::ofstream(directory_ / "trainer" / "3.2.error.json") << "{\"message\":\"boom\"}";
  out_[1].reset();
  err_[1].reset();
  ASSERT_TRUE(turn_until([&] { return told_.stdout_bytes == 1; }));
  EXPECT_FALSE(told_.complete) << "its tree may still write an error file";
  writer_->rank_ended(kRank);
  EXPECT_TRUE(turn_until([&] { return told_.complete && !sink_.copies[OutputStream::kErrorFile].empty(); }));
  EXPECT_EQ(sink_.copies[OutputStream::kErrorFile], "{\"message\":\"boom\"}");
  EXPECT_EQ(told_.error_bytes, 18U);
}

TEST_F(LogCopies, DoNotFollowALinkInThePlaceOfAnErrorFile) {
  add();
  std::ofstream(directory_ / "secret") << "secret";
  fs::create_symlink(directory_ / "secret", directory_ / "trainer" / "3.2.error.json");
  end();
  EXPECT_TRUE(turn_until([&] { return told_.complete; }));
  EXPECT_EQ(told_.error_bytes, 0U);
}

}  // namespace
}  // namespace monarch::daemon
