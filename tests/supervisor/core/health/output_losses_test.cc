#include "supervisor/core/health/output_losses.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

constexpr HostId kHost{2};
const std::string kFull = "write /x/0.1.err: No space left on device";

Instant at(int seconds) { return Instant::since_boot(Duration::seconds(1'000 + seconds)); }

TEST(OutputLosses, AreToldWhenTheyBeginAndWhenTheyAreOver) {
  OutputLosses losses;
  EXPECT_FALSE(losses.note(kHost, "v3", 0, "", at(0)));
  const auto begun = losses.note(kHost, "v3", 100, kFull, at(0));
  ASSERT_TRUE(begun);
  EXPECT_TRUE(begun->begins);
  EXPECT_EQ(begun->message, "v3: what ranks write is shown and in no file, 100 bytes so far: " + kFull);
  EXPECT_FALSE(losses.note(kHost, "v3", 5'000, kFull, at(0)));
  EXPECT_EQ(losses.failure(kHost), kFull);
  const auto over = losses.note(kHost, "v3", 6'000, "", at(0));
  ASSERT_TRUE(over);
  EXPECT_FALSE(over->begins);
  EXPECT_EQ(over->message, "v3: what ranks write is kept again; 6000 bytes of it are in no file");
  EXPECT_FALSE(losses.note(kHost, "v3", 6'000, "", at(0)));
  EXPECT_EQ(losses.failure(kHost), "");
  EXPECT_EQ(losses.account(), std::vector<std::string>{"v3: 6000 bytes (" + kFull + ")"});
}

TEST(OutputLosses, BetweenTwoBeatsAreTold) {
  OutputLosses losses;
  const auto told = losses.note(kHost, "v3", 7, "", at(0));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->message, "v3: what ranks write is shown and in no file, 7 bytes so far");
}

TEST(OutputLosses, OfADaemonThatWasStartedAgainAreAdded) {
  OutputLosses losses;
  losses.note(kHost, "v3", 100, kFull, at(0));
  losses.note(kHost, "v3", 0, "", at(0));
  losses.note(kHost, "v3", 30, kFull, at(0));
  EXPECT_EQ(losses.account(), std::vector<std::string>{"v3: 130 bytes (" + kFull + ")"});
}

// Each word is kept: a host that says that it loses, and that it does not, makes us write so many a minute.
TEST(OutputLosses, AreToldSoManyTimesAMinute) {
  OutputLosses losses;
  std::uint32_t told = 0;
  std::uint64_t lost = 0;
  for (int beat = 0; beat < 1'000; ++beat) {
    if (losses.note(kHost, "v3", ++lost, beat % 2 == 0 ? kFull : "", at(0))) ++told;
    if (losses.note(HostId(1), "v2", lost, "", at(0))) ++told;
  }
  EXPECT_EQ(told, 2 * WordBudget::kAMinute);
  // What was kept from people is told once there is room for it.
  losses.note(kHost, "v3", lost, kFull, at(59));
  const auto late = losses.note(kHost, "v3", lost, kFull, at(60));
  ASSERT_TRUE(late);
  EXPECT_TRUE(late->begins);
  EXPECT_FALSE(losses.note(kHost, "v3", lost, kFull, at(61))) << "once";
}

TEST(OutputLosses, AreNoneWhereNothingWasLost) {
  OutputLosses losses;
  EXPECT_TRUE(losses.note(kHost, "v3", 0, kFull, at(0)))
      << "a file that cannot be opened is told before a byte is lost";
  EXPECT_TRUE(losses.account().empty());
}

}  // namespace
}  // namespace monarch
