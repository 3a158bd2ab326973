#include "transport/base/step_lines.h"

#include <gtest/gtest.h>

#include <string>

namespace monarch {
namespace {

using Sight = StepBytes::Sight;

// What the node reads out of lines that are for all.
Sight take(const std::string& lines, std::string_view node, StepBytes& into) {
  Sight sight = Sight::kOther;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = lines.find('\n', at);
    EXPECT_LT(end - at, kStepLineBytes);
    StepLine line;
    EXPECT_TRUE(read_step_line(std::string_view(lines).substr(at, end - at), line));
    if (line.node == node) sight = into.add(line.rest);
    at = end + 1;
  }
  return sight;
}

TEST(StepLines, CarryAnyBytesInLinesThatSrunDoesNotCut) {
  std::string bytes;
  for (int i = 0; i < 5'000; ++i) bytes += static_cast<char>(i * 7);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{319}, std::size_t{320}, bytes.size()}) {
    const std::string part = bytes.substr(0, size);
    StepBytes read(bytes.size());
    const std::string longest(255, 'n');
    EXPECT_EQ(take(step_lines("h1", "other") + step_lines(longest, part) + step_lines("h11", "more"), longest, read),
              Sight::kWhole);
    EXPECT_EQ(read.bytes(), part);
  }
}

TEST(StepLines, AreOfANodeOrOfNobody) {
  StepLine line;
  ASSERT_TRUE(read_step_line("@h1 monarch-remote 1 Linux \r", line));
  EXPECT_EQ(line.node, "h1");
  EXPECT_EQ(line.rest, "monarch-remote 1 Linux");
  for (const char* none : {"", "@", "@h1", "@ h1", "h1 there", " @h1 there", "@h1 "}) {
    EXPECT_FALSE(read_step_line(none, line)) << none;
  }
}

TEST(StepLines, AreBrokenByWhatIsNoDigitOrTooMuch) {
  for (const char* broken : {"+0", "+0g", "=xy", "=-1", "+ 1", "=0102030405"}) {
    StepBytes read(4);
    EXPECT_EQ(read.add(broken), Sight::kBroken) << broken;
    EXPECT_EQ(read.add("=00"), Sight::kBroken) << "and stays so";
  }
  StepBytes whole(4);
  EXPECT_EQ(whole.add("there"), Sight::kOther);
  EXPECT_EQ(whole.add("+0102"), Sight::kMore);
  EXPECT_EQ(whole.add("=0304"), Sight::kWhole);
  EXPECT_EQ(whole.add("=05"), Sight::kBroken) << "behind the end";
  EXPECT_EQ(whole.bytes(), "\x01\x02\x03\x04");
}

}  // namespace
}  // namespace monarch
