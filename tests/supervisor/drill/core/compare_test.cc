#include "supervisor/drill/core/compare.h"

#include <gtest/gtest.h>

namespace monarch::drill {
namespace {

WallTime second(std::int64_t n) { return {n * 1'000'000'000}; }

// Four ranks that are struck from second 20 to second 80.
class TwoJobs {
 public:
  TwoJobs() {
    record_.meshes = {{.name = "m", .ranks = 4, .ranks_per_gang = 2}};
    record_.control_from = second(10);
    record_.control_to = second(20);
    record_.faults_to = second(80);
  }
  // Until then so many rank-seconds of that job were new.
  TwoJobs& sample(std::int64_t at, std::int64_t done, std::uint32_t job = 0) {
    DrillSample taken{.at = second(at), .job = job, .meshes = {}, .hosts = {}};
    taken.meshes.push_back({.steps = {std::uint64_t{1}, std::uint64_t{1}},
                            .phases = {},
                            .rank_milliseconds = {{"new", done * 1'000}, {"redone", 7'000}}});
    record_.samples.push_back(taken);
    return *this;
  }
  DrillRecord& record() { return record_; }
  std::optional<CompareRun> compared() const { return compare_run(record_); }

 private:
  DrillRecord record_;
};

TEST(DrillCompare, LosesNothingWhereAllThatWasDoneIsNew) {
  const auto run = TwoJobs().sample(10, 40).sample(20, 80).sample(80, 320).compared();
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->lost_rank_milliseconds, 0);
  EXPECT_EQ(run->rank_milliseconds, 240'000);
}

TEST(DrillCompare, LosesWhatNoNewStepWasDoneIn) {
  const auto run = TwoJobs().sample(20, 80).sample(50, 170).sample(80, 290).compared();
  EXPECT_EQ(run->lost_rank_milliseconds, 30'000);
}

TEST(DrillCompare, CountsOnFromJobToJobAndTheTimeBetweenThemAsLost) {
  // The first job ends at 40 s; the second has done 100 rank-seconds by 80 s.
  const auto run = TwoJobs().sample(20, 80).sample(40, 160).sample(50, 0, 1).sample(80, 100, 1).compared();
  EXPECT_EQ(run->lost_rank_milliseconds, 240'000 - 80'000 - 100'000);
}

TEST(DrillCompare, SaysNothingOfRanksThatNameNoSteps) {
  TwoJobs run;
  run.sample(20, 80).sample(80, 320);
  for (DrillSample& taken : run.record().samples) taken.meshes[0].steps = {std::nullopt, std::nullopt};
  EXPECT_FALSE(run.compared().has_value());
  EXPECT_FALSE(compare_run(DrillRecord{}).has_value());
}

}  // namespace
}  // namespace monarch::drill
