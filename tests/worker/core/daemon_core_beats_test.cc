#include "worker/core/daemon_core_beats.h"

#include <gtest/gtest.h>

namespace monarch::daemon {
namespace {

constexpr Duration kHeartbeat = Duration::seconds(1);

Instant at(std::int64_t milliseconds) { return Instant::since_boot(Duration::milliseconds(milliseconds)); }

TEST(BeatSchedule, BeatsEveryHeartbeatWithinATenth) {
  BeatSchedule schedule(kHeartbeat, 1);
  EXPECT_TRUE(schedule.due(at(0)));
  schedule.send(at(5'000), 0.0);
  EXPECT_EQ(schedule.next_due(), at(6'000));
  schedule.send(at(6'000), 1.0);
  EXPECT_EQ(schedule.next_due(), at(7'100));
  schedule.send(at(7'100), -1.0);
  EXPECT_EQ(schedule.next_due(), at(8'000));
  EXPECT_FALSE(schedule.due(at(7'999)));
  EXPECT_TRUE(schedule.due(at(8'000)));
}

TEST(BeatSchedule, HurriesButKeepsItsFloor) {
  BeatSchedule schedule(kHeartbeat, 1);
  schedule.send(at(1'000), 0.0);
  schedule.hurry(at(1'000));
  EXPECT_EQ(schedule.next_due(), at(1'001));
  schedule.hurry(at(1'004));
  EXPECT_EQ(schedule.next_due(), at(1'001));
  schedule.send(at(1'001), 0.0);
  schedule.hurry(at(1'500));
  EXPECT_TRUE(schedule.due(at(1'500)));
}

TEST(BeatSchedule, RemembersWhenEachBeatWasSent) {
  BeatSchedule schedule(kHeartbeat, 1);
  const std::uint64_t first = schedule.send(at(1'000), 0.0);
  const std::uint64_t second = schedule.send(at(2'000), 0.0);
  EXPECT_EQ(schedule.answered(second, at(2'003)), at(2'000));
  EXPECT_EQ(schedule.answered(first, at(2'010)), at(1'000));
  EXPECT_EQ(schedule.answered(first, at(2'020)), at(1'000));  // a repeated answer
  EXPECT_EQ(schedule.highest_answered(), second);
  EXPECT_FALSE(schedule.answered(second + 1, at(2'020)).has_value());
  EXPECT_FALSE(schedule.answered(0, at(2'020)).has_value());
  EXPECT_EQ(schedule.highest_answered(), second);
}

TEST(BeatSchedule, MeasuresTheFirstAnswerToTheNewestBeat) {
  BeatSchedule schedule(kHeartbeat, 1);
  EXPECT_EQ(schedule.round_trip(), Duration::zero());
  const std::uint64_t first = schedule.send(at(1'000), 0.0);
  const std::uint64_t second = schedule.send(at(2'000), 0.0);
  schedule.answered(second, at(2'003));
  EXPECT_EQ(schedule.round_trip(), Duration::milliseconds(3));
  schedule.answered(second, at(2'500));  // repeated
  schedule.answered(first, at(2'600));   // late
  EXPECT_EQ(schedule.round_trip(), Duration::milliseconds(3));
}

TEST(BeatSchedule, ForgetsBeatsBeyondItsWindow) {
  BeatSchedule schedule(kHeartbeat, 1);
  const std::uint64_t first = schedule.send(at(0), 0.0);
  std::uint64_t last = first;
  for (std::size_t i = 0; i < BeatSchedule::kWindow; ++i) last = schedule.send(at(1), 0.0);
  EXPECT_FALSE(schedule.answered(first, at(2)).has_value());
  EXPECT_TRUE(schedule.answered(first + 1, at(2)).has_value());
  EXPECT_TRUE(schedule.answered(last, at(2)).has_value());
}

TEST(BeatSchedule, NeverUsesANumberOfAnEarlierDaemon) {
  BeatSchedule before(kHeartbeat, 1);
  BeatSchedule after(kHeartbeat, 2);
  std::uint64_t last = 0;
  for (int i = 0; i < 1'000; ++i) last = before.send(at(i), 0.0);
  after.send(at(2'000), 0.0);
  EXPECT_FALSE(after.answered(last, at(3'000)).has_value());
  EXPECT_GT(after.send(at(3'000), 0.0), last);
}

}  // namespace
}  // namespace monarch::daemon
