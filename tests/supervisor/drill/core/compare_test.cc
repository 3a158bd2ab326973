#include "supervisor/drill/core/compare.h"

#include <gtest/gtest.h>

namespace monarch::drill {
namespace {

WallTime second(std::int64_t n) { return {n * 1'000'000'000}; }

// Two gangs of two ranks: ten steps a second in control, and `done` of each in a minute of faults.
DrillRecord run_of(std::uint64_t first_done, std::uint64_t second_done) {
  DrillRecord record;
  record.meshes = {{.name = "m", .ranks = 4, .ranks_per_gang = 2}};
  record.control_from = second(10);
  record.control_to = second(20);
  record.faults_to = second(80);
  const auto sample = [&](std::int64_t at, std::uint64_t one, std::uint64_t other) {
    DrillSample taken{.at = second(at), .meshes = {}, .hosts = {}};
    taken.meshes.push_back({.steps = {one, other}, .phases = {}, .rank_milliseconds = {}});
    record.samples.push_back(taken);
  };
  sample(10, 0, 0);
  sample(20, 100, 100);
  sample(80, 100 + first_done, 100 + second_done);
  return record;
}

TEST(DrillCompare, LosesNothingWhereStepsGoOnAsInControl) {
  const auto run = compare_run(run_of(600, 600));
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->lost_rank_milliseconds, 0);
  EXPECT_EQ(run->rank_milliseconds, 240'000);
}

TEST(DrillCompare, CountsTheRanksOfAGangThatStoodStill) {
  // 150 steps of one gang are 15 s of two ranks.
  EXPECT_EQ(compare_run(run_of(600, 450))->lost_rank_milliseconds, 30'000);
  EXPECT_EQ(compare_run(run_of(0, 0))->lost_rank_milliseconds, 240'000);
}

TEST(DrillCompare, SaysNothingOfRanksThatNameNoSteps) {
  DrillRecord record = run_of(600, 600);
  for (DrillSample& taken : record.samples) taken.meshes[0].steps = {std::nullopt, std::nullopt};
  EXPECT_FALSE(compare_run(record).has_value());
  EXPECT_FALSE(compare_run(DrillRecord{}).has_value());
}

}  // namespace
}  // namespace monarch::drill
