#include "supervisor/workers/output_copy.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace monarch {
namespace {

namespace fs = std::filesystem;

constexpr RankId kRank{MeshId(0), Rank(3)};
constexpr Generation kGeneration{Term(1), 2};

class Copy : public ::testing::Test {
 protected:
  Copy() {
    std::string path = (fs::temp_directory_path() / "monarch-copy-XXXXXX").string();
    directory_ = ::mkdtemp(path.data());
    start();
  }
  ~Copy() override { fs::remove_all(directory_); }

  void start() {
    copy_ = std::make_unique<OutputCopy>(
        OutputCopyOptions{.log_directory = directory_.string(), .mesh_names = {"trainer"}, .max_bytes = 100},
        OutputCopy::Handlers{
            .ask = [this](const Incarnation&, const OutputFrom& from) { asked_.push_back(from.offset); },
            .on_copied = [this](const Incarnation&) { ++copied_; },
            .on_failure = [this](const std::string& why) { failures_.push_back(why); }});
  }
  void say(std::uint64_t offset, std::string bytes, OutputStream stream = OutputStream::kStdout) {
    copy_->on_piece({kRank, kGeneration}, {stream, offset, std::move(bytes)}, now_);
  }
  void written(std::uint64_t bytes, bool complete = false, std::uint32_t error_bytes = 0) {
    copy_->on_written(
        {.process = {kRank, kGeneration}, .stdout_bytes = bytes, .error_bytes = error_bytes, .complete = complete},
        now_);
  }
  std::string file(const char* suffix = "out") const {
    std::ifstream in(directory_ / "trainer" / (std::string("3.2.") + suffix), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path directory_;
  std::unique_ptr<OutputCopy> copy_;
  std::vector<std::uint64_t> asked_;
  int copied_ = 0;
  std::vector<std::string> failures_;
  Instant now_ = Instant{} + Duration::seconds(100);
};

TEST_F(Copy, TakesWhatFollowsAndPassesOverWhatItHas) {
  say(0, "hello ");
  say(0, "hello ");
  say(3, "lo world");
  EXPECT_EQ(file(), "hello world");
  EXPECT_TRUE(asked_.empty());
  EXPECT_EQ(copy_->next_due(), Instant::never());
}

TEST_F(Copy, AsksOnceForWhatIsMissingBetweenTwoPieces) {
  say(0, "ab");
  now_ = now_ + Duration::seconds(1);
  say(4, "ef");
  say(6, "gh");
  EXPECT_EQ(asked_, std::vector<std::uint64_t>{2});
  say(2, "cd");
  say(4, "efgh");
  EXPECT_EQ(file(), "abcdefgh");
}

TEST_F(Copy, AsksAgainForWhatDoesNotCome) {
  written(5);
  const Instant due = copy_->next_due();
  EXPECT_EQ(due, now_ + OutputCopy::kPatience) << "what was just written is on its way";
  now_ = due;
  copy_->on_time(now_);
  copy_->on_time(now_);
  EXPECT_EQ(asked_, std::vector<std::uint64_t>{0});
  now_ = copy_->next_due();
  copy_->on_time(now_);
  EXPECT_EQ(asked_.size(), 2U);
  say(0, "hello");
  EXPECT_EQ(copy_->next_due(), Instant::never());
}

TEST_F(Copy, IsCopiedWhenAllIsThereAndNoSooner) {
  say(0, "hello");
  written(7, true);
  EXPECT_EQ(copied_, 0);
  say(5, "!!");
  EXPECT_EQ(copied_, 1);
  written(7, true);
  EXPECT_EQ(copied_, 2) << "whoever asks again is told again";
}

TEST_F(Copy, TellsWhenItsDiskTakesNothingAndWhenItDoes) {
  std::ofstream(directory_ / "trainer") << "in the way";
  say(0, "hello");
  ASSERT_FALSE(failures_.empty());
  EXPECT_NE(failures_.back().find((directory_ / "trainer").string()), std::string::npos) << failures_.back();
  fs::remove(directory_ / "trainer");
  say(0, "hello");
  EXPECT_EQ(file(), "hello");
  EXPECT_EQ(failures_.back(), "");
}

TEST_F(Copy, WaitsForTheErrorFileAndWritesItWhole) {
  written(0, true, 6);
  EXPECT_EQ(copied_, 0);
  say(0, "{\"a\"", OutputStream::kErrorFile);
  say(4, ":}", OutputStream::kErrorFile);
  EXPECT_EQ(copied_, 1);
  EXPECT_EQ(file("error.json"), "{\"a\":}");
}

TEST_F(Copy, GoesOnWhereItsFilesEndAfterARestart) {
  say(0, "hello ");
  start();
  say(6, "world");
  EXPECT_EQ(file(), "hello world");
}

TEST_F(Copy, RotatesAsTheHostDoes) {
  say(0, std::string(100, 'a') + "bcd");
  EXPECT_EQ(file("out.1"), std::string(100, 'a'));
  EXPECT_EQ(file(), "bcd");
  EXPECT_EQ(file("out.start"), "100\n");
}

TEST_F(Copy, GoesOnBehindWhatItsHostHasRotatedAway) {
  say(0, std::string(100, 'a') + "bcd");
  copy_->on_gone({kRank, kGeneration}, {.stream = OutputStream::kStdout, .oldest = 500}, now_);
  say(500, "fresh");
  written(505, true);
  EXPECT_EQ(file(), "fresh");
  EXPECT_EQ(file("out.start"), "500\n");
  EXPECT_FALSE(fs::exists(directory_ / "trainer" / "3.2.out.1"));
  EXPECT_EQ(copied_, 1);
}

TEST_F(Copy, AsksAgainForWhatItsDiskDidNotTake) {
  std::ofstream(directory_ / "trainer") << "a file in the place of the folder";
  say(0, "hello");
  EXPECT_EQ(copy_->next_due(), now_ + OutputCopy::kPatience);
  fs::remove(directory_ / "trainer");
  now_ = copy_->next_due();
  copy_->on_time(now_);
  EXPECT_EQ(asked_, std::vector<std::uint64_t>{0});
  say(0, "hello");
  EXPECT_EQ(file(), "hello");
}

TEST_F(Copy, TakesNothingOfAMeshThatIsNone) {
  copy_->on_piece({{MeshId(1), Rank(0)}, kGeneration}, {OutputStream::kStdout, 0, "x"}, now_);
  EXPECT_EQ(fs::directory_iterator(directory_), fs::directory_iterator());
}

// However many generations a host claims to have.
TEST_F(Copy, KeepsNoMoreFilesOpenThanItMayAndLosesNothing) {
  const auto open_now = [] { return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()); };
  OutputCopy copy({.log_directory = directory_.string(), .mesh_names = {"trainer"}, .most_open = 2},
                  {.ask = [](const Incarnation&, const OutputFrom&) {},
                   .on_copied = [this](const Incarnation&) { ++copied_; },
                   .on_failure = [](const std::string&) {}});
  const auto before = open_now();
  for (std::uint64_t round = 0; round < 3; ++round) {
    for (std::uint64_t generation = 1; generation <= 20; ++generation) {
      copy.on_piece({kRank, {Term(1), generation}}, {OutputStream::kStdout, round * 2, "ab"}, now_);
    }
  }
  EXPECT_LE(open_now() - before, 8);
  for (std::uint64_t generation = 1; generation <= 20; ++generation) {
    copy.on_written({.process = {kRank, {Term(1), generation}}, .stdout_bytes = 6, .complete = true}, now_);
    std::ifstream in(directory_ / "trainer" / ("3." + std::to_string(generation) + ".out"));
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "ababab");
  }
  EXPECT_EQ(copied_, 20);
  EXPECT_EQ(open_now(), before);
}

}  // namespace
}  // namespace monarch
