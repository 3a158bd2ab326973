#include "supervisor/core/health/output_losses.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

constexpr HostId kHost{2};
const std::string kFull = "write /x/0.1.err: No space left on device";

TEST(OutputLosses, AreToldWhenTheyBeginAndWhenTheyAreOver) {
  OutputLosses losses;
  EXPECT_FALSE(losses.note(kHost, "v3", 0, ""));
  const auto begun = losses.note(kHost, "v3", 100, kFull);
  ASSERT_TRUE(begun);
  EXPECT_TRUE(begun->begins);
  EXPECT_EQ(begun->message, "v3: what ranks write is shown and in no file, 100 bytes so far: " + kFull);
  EXPECT_FALSE(losses.note(kHost, "v3", 5'000, kFull));
  EXPECT_EQ(losses.failure(kHost), kFull);
  const auto over = losses.note(kHost, "v3", 6'000, "");
  ASSERT_TRUE(over);
  EXPECT_FALSE(over->begins);
  EXPECT_EQ(over->message, "v3: what ranks write is kept again; 6000 bytes of it are in no file");
  EXPECT_FALSE(losses.note(kHost, "v3", 6'000, ""));
  EXPECT_EQ(losses.failure(kHost), "");
  EXPECT_EQ(losses.account(), std::vector<std::string>{"v3: 6000 bytes (" + kFull + ")"});
}

TEST(OutputLosses, BetweenTwoBeatsAreTold) {
  OutputLosses losses;
  const auto told = losses.note(kHost, "v3", 7, "");
  ASSERT_TRUE(told);
  EXPECT_EQ(told->message, "v3: what ranks write is shown and in no file, 7 bytes so far");
}

TEST(OutputLosses, OfADaemonThatWasStartedAgainAreAdded) {
  OutputLosses losses;
  losses.note(kHost, "v3", 100, kFull);
  losses.note(kHost, "v3", 0, "");
  losses.note(kHost, "v3", 30, kFull);
  EXPECT_EQ(losses.account(), std::vector<std::string>{"v3: 130 bytes (" + kFull + ")"});
}

TEST(OutputLosses, AreNoneWhereNothingWasLost) {
  OutputLosses losses;
  EXPECT_TRUE(losses.note(kHost, "v3", 0, kFull)) << "a file that cannot be opened is told before a byte is lost";
  EXPECT_TRUE(losses.account().empty());
}

}  // namespace
}  // namespace monarch
