#include "transport/output/log_times.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "transport/base/text.h"

namespace monarch {

namespace {

class LogTimesFile : public testing::Test {
 protected:
  LogTimesFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "monarch-times-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~LogTimesFile() override {
    std::error_code ignored;  // a folder that stays is seen by who looks for leftovers
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string stream() const { return folder_ + "/3.1.out"; }
  std::string content() const {
    std::ostringstream words;
    words << std::ifstream(stream() + ".times").rdbuf();
    return words.str();
  }
  static WallTime at(std::int64_t milliseconds) { return {milliseconds * 1'000'000}; }

  std::string folder_;
};

}  // namespace

TEST_F(LogTimesFile, HasALineForEachSecondInWhichSomethingWasWritten) {
  LogTimes times(stream());
  times.note(0, at(1000));
  times.note(10, at(1500));
  times.note(20, at(1999));
  times.note(30, at(2000));
  times.note(40, at(9000));
  times.note(50, at(3000));  // the clock was set back
  EXPECT_EQ(content(), "0 1000 2000\n30 2000 3000\n40 9000 10000\n50 3000 4000\n");
}

TEST_F(LogTimesFile, GoesOnWhereADaemonBeforeStopped) {
  LogTimes(stream()).note(0, at(1000));
  LogTimes(stream()).note(7, at(1200));
  EXPECT_EQ(content(), "0 1000 2000\n7 1200 2200\n");
}

TEST_F(LogTimesFile, StaysWithinItsLimit) {
  std::string lines;
  std::int64_t now = 1'000'000;
  std::uint64_t offset = 0;
  for (; lines.size() < LogTimes::kMostBytes; now += 1000, offset += 5) {
    lines += text(offset, " ", now, " ", now + 1000, "\n");
  }
  std::ofstream(stream() + ".times") << lines;
  LogTimes times(stream());
  times.note(offset, at(now));
  const std::string thinner = content();
  EXPECT_LT(thinner.size(), LogTimes::kMostBytes * 3 / 4);
  EXPECT_TRUE(thinner.starts_with("0 1000000 1002000\n10 1002000 1004000\n")) << thinner.substr(0, 60);
  EXPECT_TRUE(thinner.ends_with(text("\n", offset, " ", now, " ", now + 1000, "\n")));
}

TEST_F(LogTimesFile, FollowsNoLink) {
  const std::string victim = folder_ + "/victim";
  std::ofstream(victim) << "precious";
  std::filesystem::create_symlink(victim, stream() + ".times");
  LogTimes(stream()).note(0, at(1000));
  std::ostringstream words;
  words << std::ifstream(victim).rdbuf();
  EXPECT_EQ(words.str(), "precious");
}

}  // namespace monarch
