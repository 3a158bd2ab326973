#include "supervisor/client/away.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

Away example() {
  return {.host = "node01",
          .bundle = std::string(64, 'a'),
          .monarch = "/home/u/.cache/monarch/bundle/a/bin/monarch",
          .directory = "/home/u/.local/state/monarch/jobs/hello-3fa2",
          .monarch_bytes = 5'000'000,
          .worker_bytes = 3'600'000};
}

TEST(Away, IsReadAsItWasWritten) {
  const auto read = parse_away(write_away(example()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, example());
}

TEST(Away, NeedsNoPathsWhileAJobStarts) {
  Away early = example();
  early.monarch = early.directory = "";
  const auto read = parse_away(write_away(early));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, early);
}

TEST(Away, RefusesWhatNobodyCanMean) {
  Away no_host = example();
  no_host.host = "";
  Away no_digest = example();
  no_digest.bundle = "../../etc";
  Away upper = example();
  upper.bundle = std::string(64, 'A');
  Away relative = example();
  relative.monarch = "bin/monarch";
  Away two_lines = example();
  two_lines.directory = "/home/u\n/x";
  for (const Away& wrong : {no_host, no_digest, upper, relative, two_lines}) {
    const auto read = parse_away(write_away(wrong));
    ASSERT_FALSE(read.ok()) << write_away(wrong);
    EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
    EXPECT_NE(read.error().message.find(kAwayFile), std::string::npos);
  }
}

TEST(Away, RefusesOtherVersionsAndWhatIsNoJson) {
  std::string later = write_away(example());
  later.replace(later.find("\"v\":1"), 5, "\"v\":2");
  EXPECT_FALSE(parse_away(later).ok());
  EXPECT_FALSE(parse_away("{}").ok());
  EXPECT_FALSE(parse_away("elsewhere").ok());
  EXPECT_FALSE(parse_away("").ok());
}

}  // namespace
}  // namespace monarch
