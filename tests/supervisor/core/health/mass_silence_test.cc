#include "supervisor/core/health/mass_silence.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

Instant at(std::int64_t milliseconds) { return Instant::since_boot(Duration::milliseconds(milliseconds)); }

// Heartbeat 1 s, lease 6 s; three seconds after the last of them fell silent.
bool holds(const std::vector<std::int64_t>& since, std::size_t of) {
  MassSilence brake(Duration::seconds(1), Duration::seconds(6));
  std::vector<MassSilence::Silent> silent;
  for (const std::int64_t one : since) silent.push_back({.since = at(one)});
  return brake.turn(silent, of, at(100'000));
}

TEST(MassSilence, TakesTwoHostsOrFortyPercentForMany) {
  const std::vector<std::pair<std::size_t, std::size_t>> cases = {{1, 2}, {2, 2}, {3, 2},  {4, 2},
                                                                  {5, 2}, {6, 3}, {10, 4}, {1'024, 410}};
  for (const auto& [hosts, many] : cases) EXPECT_EQ(MassSilence::many(hosts), many) << hosts << " hosts";
}

TEST(MassSilence, HoldsNothingForASingleHost) {
  EXPECT_FALSE(holds({90'000}, 1));
  EXPECT_FALSE(holds({90'000}, 2));
  EXPECT_FALSE(holds({90'000}, 3));
}

TEST(MassSilence, HoldsWhenTwoOfThreeFellSilentTogether) {
  EXPECT_TRUE(holds({90'000, 92'000}, 3));
  EXPECT_FALSE(holds({90'000, 92'001}, 3));
}

TEST(MassSilence, LooksAtEveryStretchOfTwoHeartbeats) {
  EXPECT_TRUE(holds({70'000, 94'000, 80'000, 95'000, 94'500}, 6));
  EXPECT_FALSE(holds({70'000, 94'000, 80'000, 95'000, 85'500}, 6));
}

TEST(MassSilence, HoldsForTwoLeasesAndNotAgainForTheSameHosts) {
  MassSilence brake(Duration::seconds(1), Duration::seconds(6));
  std::vector<MassSilence::Silent> silent = {{.since = at(97'000)}, {.since = at(97'000)}};
  EXPECT_TRUE(brake.turn(silent, 4, at(100'000)));
  ASSERT_TRUE(brake.hold().has_value());
  EXPECT_EQ(brake.hold()->until, at(112'000));
  EXPECT_EQ(brake.hold()->silent, 2U);
  EXPECT_EQ(brake.hold()->of, 4U);
  for (auto& one : silent) one.held_before = true;
  EXPECT_FALSE(brake.turn(silent, 4, at(111'999)));
  EXPECT_TRUE(brake.hold().has_value());
  EXPECT_FALSE(brake.turn(silent, 4, at(112'000)));
  EXPECT_FALSE(brake.hold().has_value());
}

TEST(MassSilence, BeginsAnewForOthersThatFellSilentTogetherSince) {
  MassSilence brake(Duration::seconds(1), Duration::seconds(6));
  EXPECT_TRUE(brake.turn({{.since = at(97'000)}, {.since = at(97'000)}}, 5, at(100'000)));
  EXPECT_TRUE(brake.covers(at(99'000)));
  EXPECT_FALSE(brake.covers(at(99'001)));
  const std::vector<MassSilence::Silent> silent = {{.since = at(97'000), .held_before = true},
                                                   {.since = at(97'000), .held_before = true},
                                                   {.since = at(103'000)},
                                                   {.since = at(104'000)}};
  EXPECT_TRUE(brake.turn(silent, 5, at(107'000)));
  EXPECT_EQ(brake.hold()->until, at(119'000));
}

TEST(MassSilence, EndsAtOnceWhenAllAreHeardAgain) {
  MassSilence brake(Duration::seconds(1), Duration::seconds(6));
  EXPECT_TRUE(brake.turn({{.since = at(97'000)}, {.since = at(97'000)}}, 4, at(100'000)));
  EXPECT_FALSE(brake.turn({}, 4, at(101'000)));
  EXPECT_FALSE(brake.hold().has_value());
}

}  // namespace
}  // namespace monarch
