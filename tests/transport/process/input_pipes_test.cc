#include "transport/process/input_pipes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "tests/transport/loop/loop_fixture.h"

namespace monarch {
namespace {

constexpr Incarnation kProcess{{MeshId(0), Rank(1)}, {Term(1), 1}};

class InputPipesTest : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    (void)::signal(SIGPIPE, SIG_IGN);  // as in a keeper
    pipes_ = std::make_unique<InputPipes>(loop(), [this](const InputTaken& taken) { told_.push_back(taken); });
  }

  void give(std::uint64_t offset, const std::string& bytes, bool end = false) {
    pipes_->give(
        kProcess,
        {.ranks = {kProcess.rank}, .generation = kProcess.generation, .offset = offset, .bytes = bytes, .end = end});
  }
  static std::string read(int fd, std::size_t most) {
    std::string bytes(most, '\0');
    const ssize_t count = ::read(fd, bytes.data(), most);
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return bytes;
  }

  std::vector<InputTaken> told_;
  std::unique_ptr<InputPipes> pipes_;
};

TEST_F(InputPipesTest, TellWhatIsInThePipe) {
  const auto reader = pipes_->open(kProcess);
  ASSERT_TRUE(reader.ok());
  give(100, "one\n");
  give(100, "one\n");  // said again
  give(102, "e\ntwo\n");
  ASSERT_EQ(told_.size(), 3U);
  EXPECT_EQ(told_[0].offset, 104U);
  EXPECT_EQ(told_[1].offset, 104U);
  EXPECT_EQ(told_[2].offset, 108U);
  give(200, "a gap\n");
  EXPECT_EQ(told_.back().offset, 108U);
  give(108, "", true);
  EXPECT_TRUE(told_.back().over);
  EXPECT_EQ(read(reader->get(), 100), "one\ntwo\n");
  EXPECT_EQ(read(reader->get(), 100), "") << "the end";
}

TEST_F(InputPipesTest, WaitForASlowReader) {
  const auto reader = pipes_->open(kProcess);
  ASSERT_TRUE(reader.ok());
  const std::string piece(kInputBytes, 'x');
  std::uint64_t offset = 0;
  for (; told_.size() == offset / kInputBytes; offset += piece.size()) give(offset, piece);
  const std::size_t before = told_.size();
  std::size_t got = read(reader->get(), kInputBytes).size();
  ASSERT_TRUE(run_until([&] { return told_.size() > before; }));
  EXPECT_EQ(told_.back().offset, offset);
  while (got < offset) got += read(reader->get(), kInputBytes).size();
}

TEST_F(InputPipesTest, HoldUpNobodyForAReaderThatHasGone) {
  auto reader = pipes_->open(kProcess);
  ASSERT_TRUE(reader.ok());
  reader->reset();
  give(0, "one\n");
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_TRUE(told_[0].over);
  pipes_->close(kProcess);
  give(4, "two\n");
  EXPECT_TRUE(told_.back().over) << "nor for one that has no pipe";
}

}  // namespace
}  // namespace monarch
