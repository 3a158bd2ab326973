// A log has a size, whoever fills it.

#include "transport/base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>

#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {
namespace {

constexpr std::uint64_t kMostBytes = 16U << 20U;

class LogTest : public ::testing::Test {
 protected:
  ~LogTest() override {
    log_start({.name = "monarch", .fd = STDERR_FILENO, .level = LogLevel::kWarn});  // as it was
    (void)::unlink(path_.data());
  }
  void start(int flags) {
    file_ = UniqueFd(::open(path_.data(), flags | O_CLOEXEC));
    ASSERT_TRUE(file_.valid());
    log_start({.name = "test", .fd = file_.get()});
  }
  std::uint64_t size() const {
    struct stat status {};
    return ::fstat(file_.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  }
  std::string content() const {
    const UniqueFd file(::open(path_.data(), O_RDONLY | O_CLOEXEC));
    std::string all(32U << 20U, '\0');
    const ssize_t got = ::read(file.get(), all.data(), all.size());
    all.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return all;
  }

  std::array<char, 32> path_{"/tmp/monarch-log-test-XXXXXX"};
  UniqueFd made_{::mkostemp(path_.data(), O_CLOEXEC)};
  UniqueFd file_;
};

TEST_F(LogTest, OfOursHasASizeAndCountsWhatWasDropped) {
  start(O_RDWR | O_APPEND);
  constexpr std::uint64_t kLines = 5'000;  // of which a log has a half
  const std::string long_words(8'000, 'x');
  for (std::uint64_t line = 0; line < kLines; ++line) {
    log_info(long_words, " line ", line);
    ASSERT_LT(size(), kMostBytes + 8'192) << line;
  }
  const std::string all = content();
  EXPECT_EQ(all.find("[monarch: "), 0U) << all.substr(0, 100);
  EXPECT_NE(all.find(" were dropped here: a log has at most 16777216 bytes]\n"), std::string::npos);
  const std::uint64_t dropped = std::stoull(all.substr(10));
  std::uint64_t lines = 0;
  for (const char one : all) lines += one == '\n' ? 1 : 0;
  EXPECT_EQ(dropped + lines - 1, kLines);
  EXPECT_GT(all.size(), 4U << 20U);
  // The newest are there, whole and in order.
  EXPECT_NE(all.find(text("line ", dropped, '\n')), std::string::npos);
  EXPECT_EQ(all.find(text("line ", dropped - 1, '\n')), std::string::npos);
  EXPECT_NE(all.find(text("line ", kLines - 1, '\n')), std::string::npos);
}

TEST_F(LogTest, OfSomebodyElseIsNotTouched) {
  start(O_WRONLY | O_APPEND);
  const std::string long_words(8'000, 'x');
  for (int line = 0; line < 2'500; ++line) log_info(long_words, " line ", line);
  EXPECT_NE(content().find(" line 0\n"), std::string::npos);
  EXPECT_GT(size(), kMostBytes);
}

}  // namespace
}  // namespace monarch
