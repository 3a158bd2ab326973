#include "supervisor/client/elsewhere.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

Elsewhere example() {
  return {.host = "node01",
          .bundle = std::string(64, 'a'),
          .monarch = "/home/u/.cache/monarch/bundle/a/bin/monarch",
          .directory = "/home/u/.local/state/monarch/jobs/hello-3fa2",
          .monarch_bytes = 5'000'000,
          .worker_bytes = 3'600'000};
}

TEST(Elsewhere, IsReadAsItWasWritten) {
  const auto read = parse_elsewhere(write_elsewhere(example()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, example());
}

TEST(Elsewhere, NeedsNoPathsWhileAJobStarts) {
  Elsewhere early = example();
  early.monarch = early.directory = "";
  const auto read = parse_elsewhere(write_elsewhere(early));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, early);
}

TEST(Elsewhere, RefusesWhatNobodyCanMean) {
  Elsewhere no_host = example();
  no_host.host = "";
  Elsewhere no_digest = example();
  no_digest.bundle = "../../etc";
  Elsewhere upper = example();
  upper.bundle = std::string(64, 'A');
  Elsewhere relative = example();
  relative.monarch = "bin/monarch";
  Elsewhere two_lines = example();
  two_lines.directory = "/home/u\n/x";
  for (const Elsewhere& wrong : {no_host, no_digest, upper, relative, two_lines}) {
    const auto read = parse_elsewhere(write_elsewhere(wrong));
    ASSERT_FALSE(read.ok()) << write_elsewhere(wrong);
    EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
    EXPECT_NE(read.error().message.find(kElsewhereFile), std::string::npos);
  }
}

TEST(Elsewhere, RefusesOtherVersionsAndWhatIsNoJson) {
  std::string later = write_elsewhere(example());
  later.replace(later.find("\"v\":1"), 5, "\"v\":2");
  EXPECT_FALSE(parse_elsewhere(later).ok());
  EXPECT_FALSE(parse_elsewhere("{}").ok());
  EXPECT_FALSE(parse_elsewhere("elsewhere").ok());
  EXPECT_FALSE(parse_elsewhere("").ok());
}

}  // namespace
}  // namespace monarch
